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
