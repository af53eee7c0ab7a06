import { OnceError } from '../../core/errors.ts'
import type { SqlRow, SqlValue } from '../../store/sql.ts'
import type { BoundValue, Database, Prepared as Statement } from './driver.ts'

/** SQL text in, rows out, on one connection. */
export interface Statements {
  query<Row = SqlRow>(text: string, values?: readonly SqlValue[]): readonly Row[]
  /** For our own text, which needs no checks. */
  prepared(text: string): Statement
}

/** Texts come from code, so there are few; one that builds them from values must not fill the memory. */
const KEPT = 256

interface Prepared {
  readonly statement: Statement
  readonly places: number
}

export function createStatements(db: Database): Statements {
  // Apart, so that an internal statement is never found by other users.
  const own = createCache((text) => db.prepare(text))
  const theirs = createCache((text): Prepared => {
    refuseControl(text)
    const statement = db.prepare(text)
    // A number would not hold all of them, and SQLite's driver throws where it does not.
    statement.setReadBigInts(true)
    refuseSecond(text, statement)
    return { statement, places: placesIn(text) }
  })
  return {
    prepared: own,
    query: <Row>(text: string, values: readonly SqlValue[] = []) => {
      const { statement, places } = theirs(text)
      // SQLite would quietly take a missing value for NULL.
      if (places !== values.length) {
        throw new OnceError('bad_option', `The statement has ${places} places and ${values.length} values: ${text}`)
      }
      const rows = statement.all(...values.map(bindable))
      return rows.map(plain) as Row[]
    },
  }
}

/** An ordinary object, as from every other driver. Whole numbers that a number holds are numbers. */
function plain(row: Readonly<Record<string, unknown>>): SqlRow {
  const copy: Record<string, unknown> = { ...row }
  for (const name in copy) {
    const value = copy[name]
    if (typeof value === 'bigint' && value >= LEAST && value <= MOST) copy[name] = Number(value)
  }
  return copy
}

const LEAST = BigInt(Number.MIN_SAFE_INTEGER)
const MOST = BigInt(Number.MAX_SAFE_INTEGER)

function createCache<T>(make: (text: string) => T): (text: string) => T {
  const kept = new Map<string, T>()
  return (text) => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const made = make(text)
    const oldest = kept.keys().next().value
    if (kept.size >= KEPT && oldest !== undefined) kept.delete(oldest)
    kept.set(text, made)
    return made
  }
}

const control =
  /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|;)*(begin|commit|end|rollback|savepoint|release|attach|detach|vacuum)\b/i

/** A transaction belongs to the store: an effect that commits it by hand would tear its record from its writes. */
function refuseControl(text: string): void {
  const word = control.exec(text)?.[1]?.toUpperCase()
  if (word === undefined) return
  throw new OnceError('bad_option', `\`${word}\` is not allowed in a statement; use \`inSavepoint\` to undo a part.`)
}

/** SQLite would run the first statement and quietly leave the others out. */
function refuseSecond(text: string, statement: Statement): void {
  const rest = text.slice(statement.sourceSQL.length)
  if (/^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|;)*$/.test(rest)) return
  throw new OnceError('bad_option', `One statement at a time; this text has a second one: ${rest.trim()}`)
}

function placesIn(text: string): number {
  const found = text.match(/'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g)
  return found?.filter((part) => part === '?').length ?? 0
}

/** Whole numbers are bound as integers: as doubles they would be stored as `5.0` in a text column. */
export function bindable(value: SqlValue): BoundValue {
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (value === null || typeof value === 'string' || typeof value === 'bigint') return value
  if (value instanceof Uint8Array) return value
  throw new OnceError('bad_option', `A value of a statement is ${describe(value)}; give text, a number, bytes or null.`)
}

function describe(value: unknown): string {
  return value === undefined ? 'undefined' : `a ${typeof value}`
}
