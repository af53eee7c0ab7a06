/**
 * Nothing runs on the pages but files of the same host, nothing is fetched from another one, and no text can become
 * markup: stored contents of strangers are shown to operators, so one mistake in a page must not be enough to run them.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const always = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const

/** A page is asked for again every time, because it names the files of the newest build. */
export const pageHeaders = {
  ...always,
  'content-security-policy': policy,
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-cache',
} as const

/** A file has its content in its name, so that it never changes. */
export const assetHeaders = { ...always, 'cache-control': 'public, max-age=31536000, immutable' } as const

export const plainHeaders = {
  ...always,
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
} as const
