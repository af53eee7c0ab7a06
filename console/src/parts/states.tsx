import type { ComponentChildren } from 'preact'

/** There is nothing; the text says why that is no surprise, or what would bring something. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="state">
      <strong>{title}</strong>
      {children === undefined ? null : <span>{children}</span>}
    </div>
  )
}

/** Something could not be had; the reader may always try again. */
export function Failed({ message, retry }: { readonly message: string; readonly retry?: () => void }) {
  return (
    <div class="state failed" role="alert">
      <strong>This could not be loaded</strong>
      <span>{message}</span>
      {retry === undefined ? null : (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function Loading({ rows = 3 }: { readonly rows?: number }) {
  return (
    <div class="state" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div class="skeleton" key={row} style={{ width: `${240 - row * 40}px` }} />
      ))}
    </div>
  )
}
