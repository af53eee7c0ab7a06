import type { Answer, HeaderList } from './exchange.ts'
import type { ProblemRow } from './problem.ts'
import { situations } from './problem.ts'

/**
 * Answers `GET {problemBase}/{name}`, where the `type` of a problem document leads: HTML for browsers, JSON for programs
 * that ask for it, and plain text for all others. Null for a name that the table does not have.
 */
export function problemPage(
  { name, type, accept = '' }: { readonly name: string; readonly type: string; readonly accept?: string | undefined },
  table: Readonly<Record<string, ProblemRow>> = situations,
): Answer | null {
  if (!Object.hasOwn(table, name)) return null
  const row = table[name] as ProblemRow
  if (/\btext\/html\b/i.test(accept)) return answer('text/html; charset=utf-8', html(name, row), [policy])
  if (/\bapplication\/(problem\+)?json\b/i.test(accept)) {
    return answer('application/json', `${JSON.stringify({ type, ...row }, null, 2)}\n`)
  }
  return answer('text/plain; charset=utf-8', plain(name, row))
}

const policy = [
  'content-security-policy',
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
] as const

function answer(contentType: string, text: string, more: HeaderList = []): Answer {
  const body = new TextEncoder().encode(text)
  // The response depends on the caller, and changes only with the software.
  const headers: HeaderList = [
    ['content-type', contentType],
    ['content-length', String(body.length)],
    ['vary', 'Accept'],
    ['cache-control', 'max-age=3600'],
    ['x-content-type-options', 'nosniff'],
    ['referrer-policy', 'no-referrer'],
    ...more,
  ]
  return { status: 200, headers, body }
}

const retryOf = ({ retryable }: ProblemRow): string =>
  retryable
    ? 'Send the same request again, with the same key, after the time in `Retry-After`.'
    : 'Do not retry the request as it is: the answer would be the same.'

/** Markdown, which is plain text to those who know none. */
function plain(name: string, row: ProblemRow): string {
  const { title, status, about, next } = row
  return `# ${title}\n\n\`${name}\`, status ${status}\n\n${about}\n\n## Retry\n\n${retryOf(row)}\n\n## What to do\n\n${next}\n`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

const escaped = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char] ?? char)

const prose = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')

function html(name: string, row: ProblemRow): string {
  const { title, status, about, next } = row
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>
:root { color-scheme: light dark }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1.25rem; font: 16px/1.6 system-ui, sans-serif }
h1 { margin-bottom: 0 }
h2 { margin: 2rem 0 0; font-size: 1.15rem }
p { margin: 0.5rem 0 }
</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
<p><code>${escaped(name)}</code>, status ${status}</p>
<p>${prose(about)}</p>
<h2>Retry</h2>
<p>${prose(retryOf(row))}</p>
<h2>What to do</h2>
<p>${prose(next)}</p>
</main>
</body>
</html>
`
}
