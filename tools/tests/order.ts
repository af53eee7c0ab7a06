/**
 * The files that take longest, so that none of them begins when all others are done; everything else follows in the
 * order of its name. Those that keep a core busy stand between those that mostly wait, because several of them at once
 * only hold each other up. Out of date this list costs some seconds and nothing else.
 */
export const LONGEST: readonly string[] = [
  'test/proof/service/imports-crash.test.ts',
  'test/proof/faults/away.test.ts',
  'test/proof/frameworks/guide-commands.test.ts',
  'test/proof/ledger/transition/explore-probe.test.ts',
  'test/contract/events/outbox/relay.test.ts',
  'test/proof/service/outreach-crash.test.ts',
  'test/proof/console/console.test.ts',
  'test/proof/ledger/transition/explore-hold.test.ts',
  'test/proof/runs/faults.test.ts',
  'test/proof/service/escalations-batch.test.ts',
  'test/proof/events/chain.test.ts',
  'test/proof/streams/simulation.test.ts',
  'test/proof/service/imports-brokers.test.ts',
  'test/proof/package/package.test.ts',
  'test/proof/simulation/ledger.test.ts',
  'test/proof/service/messages-crash.test.ts',
  'test/contract/events/brokers/local.test.ts',
  'test/proof/races/races.test.ts',
  'test/proof/service/imports-storm.test.ts',
  'test/proof/ledger/transition/explore-rerun.test.ts',
  'test/contract/service/messages-guard.test.ts',
  'test/proof/simulation/ledger-mutations.test.ts',
  'test/proof/runs/kills.test.ts',
  'test/proof/ledger/transition/mutants.test.ts',
  'test/proof/project/docs/site.test.ts',
  'test/contract/service/outreach.test.ts',
  'test/contract/service/main.test.ts',
  'test/contract/ledger/lease.test.ts',
  'test/contract/service/escalations-scenarios.test.ts',
]

/** Puts the longest first and leaves the rest as it is. */
export function longestFirst(files: readonly string[]): string[] {
  const chosen = new Set(files)
  const longest = LONGEST.filter((file) => chosen.has(file))
  const early = new Set(longest)
  return [...longest, ...files.filter((file) => !early.has(file))]
}
