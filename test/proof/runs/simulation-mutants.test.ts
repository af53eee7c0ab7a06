import type { RuleMutant } from './notices.ts'
import { mustNotice } from './notices.ts'

/** Simulations within which each mutant must be noticed. Most take one. */
const SEEDS = 20
const SIZE = { programs: 2, queued: 0, busyOperator: true }

/** Rules of clean-ups, cancels, forks, attributes and continued runs, removed one at a time. */
const mutants: readonly RuleMutant[] = [
  {
    name: 'a clean-up is forgotten',
    file: 'src/runs/clean-up.ts',
    find: 'execution.declarations.cleanUps.toReversed()',
    replace: 'execution.declarations.cleanUps.toReversed().slice(1)',
    rule: 'not_undone',
  },
  {
    name: 'clean-ups run in the order in which they were declared',
    file: 'src/runs/clean-up.ts',
    find: 'execution.declarations.cleanUps.toReversed()',
    replace: 'execution.declarations.cleanUps',
    rule: 'undone_out_of_order',
  },
  {
    name: 'the body continues after a cancel',
    file: 'src/runs/clean-up-path.ts',
    find: 'if (recorded === null) return true',
    replace: 'if (recorded === null) return false',
    rule: 'acted_after_cancel',
  },
  {
    name: 'a run that has cleaned up is resumed',
    file: 'src/runs/resume.ts',
    find: "state = 'cancelled' and not exists (${CLEANED})",
    replace: "state = 'cancelled'",
    rule: 'diverged',
  },
  {
    name: 'a run whose time is over is cancelled',
    file: 'src/runs/worker.ts',
    find: 'if (run.timedOut) return',
    replace: 'if (false) return',
    rule: 'cancelled_by_none',
  },
  {
    name: 'a run that continues another one does not get its attributes',
    file: 'src/runs/continued.ts',
    find: 'name, value from onceonly_run_attributes where run_id = ?`',
    replace: 'name, value from onceonly_run_attributes where run_id = ? and 1 = 0`',
    rule: 'attributes_differ',
  },
  {
    name: 'a child that is to continue ends with its parent',
    file: 'src/runs/tree.ts',
    find: "`if_parent_ends = 'cancel' and ${IS_LIVE}",
    replace: '`parent is not null and ${IS_LIVE}',
    rule: 'cancelled_by_none',
  },
  {
    name: 'a fork compares what it copied',
    file: 'src/runs/forked.ts',
    find: ', leadsTo: null, fingerprint: COPIED }',
    replace: ', leadsTo: null }',
    rule: 'diverged',
  },
]

mustNotice(mutants, SIZE, SEEDS)
