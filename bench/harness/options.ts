import { parseArgs } from 'node:util'

/** The command-line options of any benchmark. */
export interface Options {
  /** Fewer and shorter rounds, for development. What comes out is not a result. */
  readonly quick: boolean
  /** Pairs of every comparison, instead of its own number. */
  readonly pairs: number | null
  /** Only the comparisons whose name contains this. */
  readonly only: string | null
  /** The size of the large store of `growth`, instead of five million. */
  readonly records: number | null
  /** Writes a CPU profile of every side into the ignored folder `data/`. */
  readonly profile: boolean
  /** Counts what one request makes and calls, instead of comparing; of `http-overhead`. */
  readonly anatomy: boolean
  /** Compares with the package of another commit; of `http-overhead --anatomy`. */
  readonly against: string | null
}

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      pairs: { type: 'string' },
      only: { type: 'string' },
      records: { type: 'string' },
      profile: { type: 'boolean', default: false },
      anatomy: { type: 'boolean', default: false },
      against: { type: 'string' },
    },
  })
  if (values.against !== undefined && !values.anatomy) throw new Error('--against needs --anatomy.')
  return {
    quick: values.quick,
    pairs: wholeNumber('pairs', values.pairs),
    only: values.only ?? null,
    records: wholeNumber('records', values.records),
    profile: values.profile,
    anatomy: values.anatomy,
    against: values.against ?? null,
  }
}

/** A shortened benchmark gives no result worth keeping. */
export function isResult({ quick, pairs, only, records, profile, anatomy }: Options): boolean {
  return !quick && !profile && !anatomy && pairs === null && only === null && records === null
}

function wholeNumber(name: string, text: string | undefined): number | null {
  if (text === undefined) return null
  const number = Number(text.replaceAll('_', ''))
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${name} must be a whole number from 1.`)
  return number
}
