/**
 * The files that take longest, so that none of them begins when all others are done; everything else follows in the
 * order of its name. Those that keep a core busy stand between those that mostly wait, because several of them at once
 * only hold each other up. Out of date this list costs some seconds and nothing else.
 */
export const LONGEST: readonly string[] = [
  'service/imports-crash.test.ts',
  'test/faults/away.test.ts',
  'test/transition/explore-probe.test.ts',
  'test/outbox/relay.test.ts',
  'service/outreach-crash.test.ts',
  'console/console.test.ts',
  'test/transition/explore-hold.test.ts',
  'test/run/faults.test.ts',
  'service/escalations-batch.test.ts',
  'test/events/chain.test.ts',
  'test/stream/simulation.test.ts',
  'service/imports.test.ts',
  'test/package/package.test.ts',
  'test/simulation/ledger.test.ts',
  'service/messages-crash.test.ts',
  'test/brokers/local.test.ts',
  'test/races/races.test.ts',
  'service/imports-storm.test.ts',
  'test/transition/explore-rerun.test.ts',
  'service/messages-guard.test.ts',
  'test/simulation/ledger-mutations.test.ts',
  'test/run/kills.test.ts',
  'service/outreach.test.ts',
]

/** Puts the longest first and leaves the rest as it is. */
export function longestFirst(files: readonly string[]): string[] {
  const chosen = new Set(files)
  const longest = LONGEST.filter((file) => chosen.has(file))
  const early = new Set(longest)
  return [...longest, ...files.filter((file) => !early.has(file))]
}
