import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

export interface Column<Row> {
  readonly name: string
  /** As CSS writes the width of a grid column. */
  readonly width: string
  /** Left out on a phone. */
  readonly isMinor?: boolean
  readonly show: (row: Row) => ComponentChildren
}

interface VirtualTableProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly addressOf: (row: Row) => string
  /** Called when the reader comes near the end; null when there is no more. */
  readonly more: (() => void) | null
}

const rowPx = 36
/** Rows that are drawn beyond what is seen, so that fast scrolling meets no gap. */
const beyond = 12
/** How many rows before the end more are asked for. */
const aheadRows = 60

/** A table that draws only what is seen, so that ten thousand rows are as quick as ten. */
export function VirtualTable<Row>({ label, columns, rows, keyOf, addressOf, more }: VirtualTableProps<Row>) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ first: 0, count: 40 })
  const look = () => {
    if (box.current === null) return
    const first = Math.max(0, Math.floor(box.current.scrollTop / rowPx) - beyond)
    const count = Math.ceil(box.current.clientHeight / rowPx) + 2 * beyond
    setView((before) => (before.first === first && before.count === count ? before : { first, count }))
  }
  useEffect(() => {
    if (box.current === null) return undefined
    const observer = new ResizeObserver(look)
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (more !== null && view.first + view.count + aheadRows >= rows.length) more()
  }, [view, rows.length, more])

  const template = columns.map(({ width }) => width).join(' ')
  const drawn = rows.slice(view.first, view.first + view.count)
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={more === null ? rows.length + 1 : -1}>
      <div class="row head" role="row" style={{ '--columns': template }}>
        {columns.map(({ name, isMinor }) => (
          <span key={name} role="columnheader" class={isMinor === true ? 'minor' : ''}>
            {name}
          </span>
        ))}
      </div>
      <div class="rows" ref={box} onScroll={look} onKeyDown={stepRows} role="rowgroup">
        <div style={{ height: `${view.first * rowPx}px` }} />
        {drawn.map((row, at) => (
          <div
            key={keyOf(row)}
            class="row"
            role="row"
            aria-rowindex={view.first + at + 2}
            style={{ '--columns': template }}
          >
            {columns.map(({ name, isMinor, show }, column) => (
              <span key={name} role="cell" class={isMinor === true ? 'minor' : ''}>
                {column === 0 ? <a href={addressOf(row)}>{show(row)}</a> : show(row)}
              </span>
            ))}
          </div>
        ))}
        <div style={{ height: `${Math.max(0, rows.length - view.first - drawn.length) * rowPx}px` }} />
      </div>
    </div>
  )
}

/** The arrows go from row to row; the browser scrolls what gets the focus into sight. */
function stepRows(event: KeyboardEvent): void {
  const step =
    event.key === 'ArrowDown' ? 'nextElementSibling' : event.key === 'ArrowUp' ? 'previousElementSibling' : null
  if (step === null || !(event.target instanceof Element)) return
  const next = event.target.closest('.row')?.[step]?.querySelector('a')
  if (next === undefined || next === null) return
  event.preventDefault()
  next.focus()
}
