import type { ComponentChildren } from 'preact'

interface PlainTableProps {
  readonly heads: readonly string[]
  /** Its rows. */
  readonly children: ComponentChildren
}

/** A short table that is shown whole. */
export function PlainTable({ heads, children }: PlainTableProps) {
  return (
    <table class="plain">
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head}>{head}</th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}
