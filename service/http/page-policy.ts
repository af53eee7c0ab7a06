import { createHash } from 'node:crypto'

/** A page of ours whose style and script stand in it. */
interface InlinePage {
  readonly style: string
  readonly script: string
  /** Whether its script asks this server. */
  readonly asks: boolean
}

/** Nothing but these two runs on the page, whatever it comes to show. */
export function pagePolicy({ style, script, asks }: InlinePage): string {
  return [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'`,
    'img-src data:',
    ...(asks ? ["connect-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

/** Of a page that is written as one file. */
export function partsOf(html: string): { readonly style: string; readonly script: string } {
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(html) ?? []
  const [, script = ''] = /<script>(.*?)<\/script>/s.exec(html) ?? []
  return { style, script }
}
