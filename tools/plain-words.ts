/**
 * Words that keep readers out: persons in place of components. The patterns are written so that this file does not break
 * its own rule. `'nobody'` in quotes is the Unix account.
 */
const odd: readonly { readonly pattern: RegExp; readonly instead: string }[] = [
  { pattern: /\b[w]hoever\b/gi, instead: 'name the component: the caller, the relay, another process' },
  {
    pattern: /(?<!')\b[nN]obody\b(?!')/g,
    instead: 'name what does not: no caller, no other process; or say "unknown"',
  },
  { pattern: /\b[s]omebody\b/gi, instead: 'name the component: another process, an operator' },
  { pattern: /\b[w]ho asks\b/gi, instead: 'say "the caller"' },
  { pattern: /\b(?:is|are|was|were|be|been|being) [t]old\b/gi, instead: 'say "gets", "learns" or "is notified"' },
  { pattern: /\bin [v]ain\b/gi, instead: 'say what does not happen' },
  { pattern: /\b[s]hrugs?\b/gi, instead: 'say "ignores"' },
  { pattern: /\bfalls? in [w]ith\b/gi, instead: 'say "adopts"' },
]

/** How many such words a place may still have. The numbers may only fall, and no place may be added. */
const remaining: Readonly<Record<string, number>> = {
  'src/ledger/stores': 78,
  'src/ledger': 58,
  'src/http/protocol': 67,
  'src/http/adapters': 2,
  'src/admin': 70,
  console: 56,
  service: 4,
}

export interface OddWord {
  readonly path: string
  readonly line: number
  readonly word: string
  readonly instead: string
}

export function oddWordsIn(path: string, text: string): OddWord[] {
  return odd.flatMap(({ pattern, instead }) =>
    Array.from(text.matchAll(pattern), ({ 0: word, index }) => ({
      path,
      line: text.slice(0, index).split('\n').length,
      word,
      instead,
    })),
  )
}

/** The words of every place that has more of them than it may. */
export function tooMany(found: readonly OddWord[], allowed: Readonly<Record<string, number>> = remaining): OddWord[] {
  const places = Map.groupBy(found, ({ path }) => placeOf(path, allowed))
  return [...places].flatMap(([place, words]) => (words.length > (allowed[place] ?? 0) ? words : []))
}

function placeOf(path: string, allowed: Readonly<Record<string, number>>): string {
  return Object.keys(allowed).find((place) => path === place || path.startsWith(`${place}/`)) ?? ''
}
