/**
 * Words that keep readers out: persons in place of components, and idioms in place of terms. The patterns are written so
 * that this file does not break its own rule. `'nobody'` in quotes is the Unix account.
 */
const odd: readonly { readonly pattern: RegExp; readonly instead: string }[] = [
  { pattern: /\b[w]hoever\b/gi, instead: 'name the component: the caller, the relay, another process' },
  {
    pattern: /(?<!')\b[nN]obody\b(?!')/g,
    instead: 'name what does not: no caller, no other process; or say "unknown"',
  },
  { pattern: /\b(?:[s]ome|[a]ny)body\b/gi, instead: 'name the component: another process, an operator' },
  { pattern: /\b[w]ho asks\b/gi, instead: 'say "the caller"' },
  { pattern: /\b(?:is|are|was|were|be|been|being) [t]old\b/gi, instead: 'say "gets", "learns" or "is notified"' },
  { pattern: /\b(?:goes|went) [o]n\b/gi, instead: 'say "continues"' },
  { pattern: /\bfor [e]ver\b/gi, instead: 'say "forever"' },
  { pattern: /\bin [v]ain\b/gi, instead: 'say what does not happen' },
  { pattern: /\b[s]hrugs?\b/gi, instead: 'say "ignores"' },
  {
    pattern: /(?:\/\/|\*) [W]ho(?:se|m)?\b(?! asks)/g,
    instead: 'name the component: the caller, the owner, the operator',
  },
  { pattern: /\bfalls? in [w]ith\b/gi, instead: 'say "adopts"' },
]

interface OddWord {
  readonly line: number
  readonly word: string
  readonly instead: string
}

export function oddWordsIn(text: string): OddWord[] {
  return odd.flatMap(({ pattern, instead }) =>
    Array.from(text.matchAll(pattern), ({ 0: word, index }) => ({
      line: text.slice(0, index).split('\n').length,
      word,
      instead,
    })),
  )
}
