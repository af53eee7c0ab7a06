import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask, Refused } from './ask.ts'
import { Empty, Failed, Loading } from './states.tsx'
import { type Column, VirtualTable } from './virtual-table.tsx'

/** One page of a list, as the server gives it. */
interface ListPage<Row> {
  readonly rows: readonly Row[]
  /** Where the next page begins; null at the end. */
  readonly cursor: string | null
}

interface Listed<Row> {
  readonly rows: readonly Row[]
  readonly cursor: string | null
  readonly isLoading: boolean
  readonly failure: string | null
  /** The server has no such list. */
  readonly isAbsent: boolean
}

/** A few screens of rows per request. */
const PAGE_ROWS = 200

const nothing = { rows: [], cursor: null, isLoading: true, failure: null, isAbsent: false } as const

export interface List<Row> extends Listed<Row> {
  more(): void
  again(): void
}

/** A list that loads more rows as the reader scrolls. */
export function useList<Row>(path: string): List<Row> {
  const [listed, setListed] = useState<Listed<Row>>(nothing)
  const asking = useRef<AbortController | null>(null)
  const load = useCallback(
    (before: readonly Row[], cursor: string | null) => {
      asking.current?.abort()
      const leaving = new AbortController()
      asking.current = leaving
      setListed({ ...nothing, rows: before, cursor })
      nextRows<Row>(path, cursor, leaving.signal).then(
        (page) => setListed({ ...nothing, rows: [...before, ...page.rows], cursor: page.cursor, isLoading: false }),
        (error: unknown) => {
          if (leaving.signal.aborted) return
          const { message, status } = error instanceof Refused ? error : { message: String(error), status: 0 }
          setListed({ rows: before, cursor, isLoading: false, failure: message, isAbsent: status === 404 })
        },
      )
    },
    [path],
  )
  useEffect(() => {
    load([], null)
    return () => asking.current?.abort()
  }, [load])
  return {
    ...listed,
    more: () => {
      if (!listed.isLoading && listed.failure === null && listed.cursor !== null) load(listed.rows, listed.cursor)
    },
    again: () => load([], null),
  }
}

/** A page may be empty and still not be the last: the server looks at so many rows at a time, and none of them fitted. */
async function nextRows<Row>(path: string, from: string | null, signal?: AbortSignal): Promise<ListPage<Row>> {
  let at = from
  for (;;) {
    // The cursor is left out where there is only one page.
    const { rows, cursor = null } = await ask<Partial<ListPage<Row>>>(
      pageOf(path, at),
      signal === undefined ? {} : { signal },
    )
    if (rows === undefined || rows.length > 0 || cursor === null) return { rows: rows ?? [], cursor }
    at = cursor
  }
}

function pageOf(path: string, cursor: string | null): string {
  const page = new URLSearchParams({ limit: String(PAGE_ROWS), ...(cursor === null ? {} : { cursor }) })
  return `${path}${path.includes('?') ? '&' : '?'}${page.toString()}`
}

/** More rows than a person reads and a browser holds with ease. */
const EXPORT_ROWS = 10_000

/** Every row of a list, page by page; the first ten thousand of a longer one. */
export function allRows(path: string): Promise<readonly unknown[]> {
  return listed(path, EXPORT_ROWS)
}

/** The first rows of a list, page by page. */
export async function listed<Row>(path: string, most: number, signal?: AbortSignal): Promise<readonly Row[]> {
  const rows: Row[] = []
  let cursor: string | null = null
  do {
    const page: ListPage<Row> = await nextRows<Row>(path, cursor, signal)
    rows.push(...page.rows)
    cursor = page.cursor
  } while (cursor !== null && rows.length < most)
  return rows.slice(0, most)
}

interface ListViewProps<Row> {
  readonly label: string
  readonly path: string
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  readonly addressOf: (row: Row) => string
  readonly empty: ComponentChildren
}

/** A list of the server: loading, failed, empty, or as many rows as there are. */
export function ListView<Row>({ label, path, columns, keyOf, addressOf, empty }: ListViewProps<Row>) {
  const { rows, cursor, isLoading, failure, more, again } = useList<Row>(path)
  if (failure !== null && rows.length === 0) return <Failed message={failure} retry={again} />
  if (rows.length === 0) return isLoading ? <Loading /> : <Empty title={`No ${label.toLowerCase()}`}>{empty}</Empty>
  return (
    <>
      <VirtualTable
        label={label}
        columns={columns}
        rows={rows}
        keyOf={keyOf}
        addressOf={addressOf}
        more={cursor === null ? null : more}
      />
      {failure === null ? null : <Failed message={failure} retry={more} />}
    </>
  )
}
