/**
 * Loaded before everything else in a child process: its wall clock is wrong, and may jump. What measures durations is
 * left alone, as on a real machine.
 */
const RealDate = Date
let skewMs = Number(process.env['ONCEONLY_TEST_SKEW_MS'] ?? 0)

class SkewedDate extends RealDate {
  constructor(...args: readonly []) {
    if (args.length === 0) super(RealDate.now() + skewMs)
    else super(...args)
  }

  static override now(): number {
    return RealDate.now() + skewMs
  }
}

globalThis.Date = SkewedDate as DateConstructor

/** From now on the wall clock shows another time. */
export function jumpBy(ms: number): void {
  skewMs += ms
}
