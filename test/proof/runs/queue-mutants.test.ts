import type { RuleMutant } from './notices.ts'
import { mustNotice } from './notices.ts'

/** Simulations within which each mutant must be noticed. Most take one or two. */
const SEEDS = 40
const SIZE = { programs: 0, queued: 8 }

const admission = 'src/runs/admission.ts'

/** Every rule of queues, removed one at a time, with the rules of the simulation of which one is broken then. */
const mutants: readonly RuleMutant[] = [
  {
    name: 'the runs of a queue are not counted',
    file: admission,
    find: "left('concurrency', 'inside')",
    replace: 'Number.POSITIVE_INFINITY',
    rule: 'too_many_at_once',
  },
  {
    name: 'the runs of a key are not counted',
    file: admission,
    find: 'if (count >= perKey) full.add(key)\n      else inside.set(key, count + 1)\n      return count < perKey',
    replace: 'return true',
    rule: 'too_many_of_a_key',
  },
  {
    name: 'runs of a key that begin together are not counted',
    file: admission,
    find: 'else inside.set(key, count + 1)',
    replace: '',
    rule: 'too_many_of_a_key',
  },
  {
    name: 'the rate is not counted',
    file: admission,
    find: "left('rate_limit', 'begun')",
    replace: 'Number.POSITIVE_INFINITY',
    rule: 'too_fast',
  },
  {
    name: 'a resumed run overwrites a time that still counts',
    file: 'src/runs/resume.ts',
    find: 'coalesce((${counted}), ${now})',
    replace: '${now}',
    rule: 'too_fast',
  },
  {
    name: 'a run that continues another one leaves the queue',
    file: 'src/runs/continued.ts',
    find: 'if (row.queue !== null) yield* keepPlace(runId, id)',
    replace: '',
    rule: 'left_its_queue',
  },
  {
    name: 'a run that continues another one is not counted for its begin',
    file: 'src/runs/continued.ts',
    find: "'ready_at', 'admitted_at']",
    replace: "'ready_at']",
    rule: 'too_fast',
  },
  {
    name: 'a resumed run need not be let in again',
    file: 'src/runs/resume.ts',
    find: "state = case when queue is null then 'running' else 'queued' end,\n    due_at = case when queue is null then ${now} end",
    replace: "state = 'running', due_at = ${now}",
    // It takes a place of the queue and one of its key: which of them is too many depends on the seed.
    rule: ['too_many_of_a_key', 'too_many_at_once'],
  },
  {
    name: 'a delay is not waited for',
    file: admission,
    find: "place = 'delayed' and ready_at <= ${at}",
    replace: "place = 'delayed'",
    rule: 'too_early',
  },
  {
    name: 'priorities are not looked at',
    file: 'src/runs/queue-tables.ts',
    find: "QUEUE_ORDER = 'priority desc, turn",
    replace: "QUEUE_ORDER = 'turn",
    rule: 'passed_over',
  },
  {
    name: 'keys that had no place are forgotten',
    file: admission,
    find: 'yield* unblock(name, found.perKey)',
    replace: 'yield* []',
    rule: 'passed_over',
  },
  {
    name: 'keys are blocked before their runs are let in',
    file: admission,
    find: 'runs.push(...(yield* letIn(fits, worker)))\n      if (full.length > 0) yield* block(name, full)',
    replace: 'if (full.length > 0) yield* block(name, full)\n      runs.push(...(yield* letIn(fits, worker)))',
    rule: 'passed_over',
  },
]

mustNotice(mutants, SIZE, SEEDS)
