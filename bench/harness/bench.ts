import type { Comparison, Row } from './compare.ts'
import { compare } from './compare.ts'
import type { Figures, Pair } from './figures.ts'
import { describeMachine, loads } from './machine.ts'
import type { Options } from './options.ts'
import { isResult, readOptions } from './options.ts'
import { jsonLine, table } from './report.ts'
import type { Side } from './side.ts'
import { runSide, runSideBySide } from './side.ts'

/** What the body of a benchmark works with. */
export interface Bench {
  readonly options: Options
  /** Prints what a reader must know: versions, settings, the cost of an fsync. */
  note(line: string): void
  progress(line: string): void
  /** Starts a side in a fresh process. */
  side(side: Side): Promise<Figures>
  /** Starts two, which take turns in so many slices. */
  sideBySide(sides: { ours: Side; other: Side }, slices: number, oursFirst: boolean): Promise<Pair>
  compare(comparison: Comparison): Promise<void>
}

/** Enough to see that everything works; too little for a result. */
const QUICK_PAIRS = 2

/**
 * Runs one benchmark: prints where it runs, measures, prints a table and one line of JSON. Whether the goals were reached is
 * in that line; the exit status says only whether there was something to measure.
 */
export async function runBench(name: string, body: (bench: Bench) => Promise<void>): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  const rows: Row[] = []
  const stop = new AbortController()
  const interrupt = () => stop.abort(new Error('Interrupted.'))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  const note = (line: string) => console.log(`  ${line}`)
  const progress = (line: string) => void process.stderr.write(`… ${name}: ${line}\n`)
  const bench: Bench = {
    options,
    note,
    progress,
    side: (side) => runSide(side, { profile: options.profile, signal: stop.signal }),
    sideBySide: (sides, slices, oursFirst) =>
      runSideBySide(sides, slices, oursFirst, { profile: options.profile, signal: stop.signal }),
    compare: async (comparison) => {
      if (options.only !== null && !comparison.name.includes(options.only)) return
      const pairs = options.pairs ?? (options.quick ? QUICK_PAIRS : comparison.pairs)
      note(`${comparison.name}: ${comparison.ours}${comparison.other === null ? '' : ` ÷ ${comparison.other}`}`)
      rows.push(...(await compare({ ...comparison, pairs }, progress, stop.signal)))
    },
  }
  console.log(`bench ${name}, ${new Date().toISOString()}${isResult(options) ? '' : `  ${NOT_A_RESULT}`}`)
  for (const line of describeMachine()) note(line)
  try {
    await body(bench)
  } catch (error) {
    // An interrupted benchmark prints what it has so far.
    if (stop.signal.aborted && rows.length > 0) return report(false)
    process.exitCode = 1
    console.error(error)
    console.log(JSON.stringify({ bench: name, ratios: {}, pass: false, error: String(error).split('\n', 1)[0] }))
    return
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
  report(isResult(options) && !stop.signal.aborted)

  function report(whole: boolean): void {
    note(`${loads()} at the end`)
    if (rows.length > 0) console.log(`\n${table(rows)}\n`)
    if (!whole) console.log(NOT_A_RESULT)
    console.log(jsonLine(name, rows, { isResult: whole }))
  }
}

const NOT_A_RESULT = '*** NOT A RESULT: the measurement was cut short ***'
