/** Ids of one list often begin alike and differ at the end: the end stays whole, the beginning gives way. */
const endChars = 12

export function ShortId({ id }: { readonly id: string }) {
  const slash = id.indexOf('/')
  const [scope, rest] = slash < 0 ? [null, id] : [id.slice(0, slash), id.slice(slash + 1)]
  const [start, end] = [rest.slice(0, -endChars), rest.slice(-endChars)]
  return (
    <code title={id}>
      <span class="visually-hidden">{id}</span>
      <span class="short-id" aria-hidden="true">
        {scope === null ? null : <span class="scope">{scopeText(scope)}</span>}
        <span class="start">{start}</span>
        <span class="end">{end}</span>
      </span>
    </code>
  )
}

/** The owner, as far as a glance needs it. */
function scopeText(scope: string): string {
  return scope.length <= 10 ? `${scope}/` : `${scope.slice(0, 6)}…/`
}
