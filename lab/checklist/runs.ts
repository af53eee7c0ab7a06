import type { Row } from './row.ts'

const key = 'src/runs/key.test.ts'
const pinned = { file: key, name: 'the key of a step is the hash of its run, its name and its tick, in every release' }
const steps = 'test/contract/runs/steps.test.ts'
const providers = 'test/contract/runs/providers.test.ts'
const replay = 'test/contract/runs/replay.test.ts'
const outreach = 'test/contract/service/outreach.test.ts'
const hashed = 'digestParts([runId, stepId, String(tick)])'
const triedAgain = { file: steps, name: 'a failed attempt is tried again under its key, later; a final one never' }

/** The execution engine. */
export const runs: readonly Row[] = [
  {
    id: 'E1',
    promise: 'The key of a step is the hash of run, step and tick, the same over retries and replays',
    removals: [
      {
        without: 'the run is part of the key',
        file: 'src/runs/key.ts',
        find: hashed,
        replace: 'digestParts([stepId, String(tick)])',
        noticed: [pinned],
      },
      {
        without: 'the step is part of the key',
        file: 'src/runs/key.ts',
        find: hashed,
        replace: 'digestParts([runId, String(tick)])',
        noticed: [pinned],
      },
      {
        without: 'the tick is part of the key',
        file: 'src/runs/key.ts',
        find: hashed,
        replace: 'digestParts([runId, stepId])',
        noticed: [
          pinned,
          { file: steps, name: 'steps run in order, each under the key of its place, and the result is kept' },
        ],
      },
      {
        without: 'a path counts its executions',
        file: 'src/runs/branch.ts',
        find: 'at.ticks.set(stepId, tick + 1)',
        replace: '',
        noticed: [{ file: steps, name: 'steps run in order, each under the key of its place, and the result is kept' }],
      },
    ],
  },
  {
    id: 'E2',
    promise: 'A final result is returned and nothing is done; otherwise the step acts, and its end is kept for 90 days',
    removals: [
      {
        without: 'a recorded step is not performed again',
        file: 'src/runs/branch.ts',
        find: 'const recorded = branch.recorded[branch.passed] ?? null',
        replace: 'const recorded = null',
        noticed: [
          { file: steps, name: 'a sleep of two days survives the engine, and steps before it are not done again' },
        ],
      },
      {
        without: 'a failure is kept',
        file: 'src/runs/perform.ts',
        find: 'counted ? withFailure(start.failures, failure) : start.failures',
        replace: 'start.failures',
        noticed: [
          { file: steps, name: 'Retry-After is honoured, and exhausted attempts fail the run with their history' },
        ],
      },
      {
        without: 'results are kept for 90 days after the end',
        file: 'src/ledger/core/limits.ts',
        find: 'runKeepMs: 90 * DAY',
        replace: 'runKeepMs: 60 * DAY',
        noticed: [
          {
            file: 'test/contract/runs/kept.test.ts',
            name: 'results are kept for ninety days after the end, and those of a live run forever',
          },
        ],
      },
      {
        without: 'ended runs are removed by themselves',
        file: 'src/runs/worker.ts',
        find: 'const removed = await holding.sweep(',
        replace: 'const removed = 0 && (await holding).sweep(',
        noticed: [
          {
            file: 'test/contract/runs/sweep.test.ts',
            name: 'the sweep continues while it removes something, however many runs have ended',
          },
        ],
      },
    ],
  },
  {
    id: 'E3',
    promise: 'Transient failures are retried under the same key; permanent ones are not',
    removals: [
      {
        without: 'a retry has the key of the first attempt',
        file: 'src/runs/perform.ts',
        find: 'work.keepsFailures ? keyAfter(key, failures) : key',
        replace: 'keyAfter(key, failures)',
        noticed: [
          {
            file: 'test/contract/runs/retry-keys.test.ts',
            name: 'an attempt that did nothing is tried again under the key of the first',
          },
        ],
      },
      {
        without: 'a permanent failure is final',
        file: 'src/runs/perform.ts',
        find: "if (isVerdict(thrown) && thrown.verdict === 'final') return after",
        replace: 'if (false) return after',
        noticed: [triedAgain],
      },
      {
        without: 'a transient failure is tried again',
        file: 'src/runs/perform.ts',
        find: "if (!exhausted && !outside) return after({ state: 'retrying', dueAt })",
        replace: 'if (!exhausted && !outside) return failed',
        noticed: [triedAgain],
      },
    ],
  },
  {
    id: 'E4',
    promise: 'A provider gets the key in the form that it takes; one without keys is not asked twice',
    removals: [
      {
        without: 'a key goes into the header of a provider',
        file: 'src/runs/http-channel.ts',
        find: 'return { headers: { [carries.header]: key }, body: plan.body }',
        replace: 'return { headers: {}, body: plan.body }',
        noticed: [
          {
            file: providers,
            name: 'a provider that takes keys gets the same one and the same bytes after a lost answer',
          },
        ],
      },
      {
        without: 'a tag goes into the body of a provider',
        file: 'src/runs/http-channel.ts',
        find: "body: withField(plan.body, carries.field.split('.'), key) }",
        replace: 'body: plan.body }',
        noticed: [{ file: providers, name: 'a tag goes where the provider takes it; what it refuses is final' }],
      },
      {
        without: 'a tag goes into the list of a provider',
        file: 'src/runs/http-channel.ts',
        find: 'return { headers: {}, body: withTag(plan.body, carries, key) }',
        replace: 'return { headers: {}, body: plan.body }',
        noticed: [{ file: providers, name: 'Amazon SES takes its tag among the others' }],
      },
      {
        without: 'a provider without keys is not asked again blindly',
        file: 'src/runs/steps.ts',
        find: "verify === undefined ? 'once' : 'verify'",
        replace: "'keyed'",
        noticed: [{ file: providers, name: 'a provider without keys is not asked twice: the step is unknown' }],
      },
      {
        without: 'a key is not used longer than its provider remembers it',
        file: 'src/runs/perform.ts',
        find: 'const outside = work.windowMs !== null && ',
        replace: 'const outside = false && ',
        noticed: [
          { file: providers, name: 'a retry beyond the window is parked, and continues after it was resolved' },
        ],
      },
    ],
  },
  {
    id: 'E5',
    promise: 'A dry replay evaluates every step, performs nothing, and compares what was with what would be',
    removals: [
      {
        without: 'a replay is dry by default',
        file: 'src/runs/engine.ts',
        find: 'if (given.dryRun !== false) return dry',
        replace: '',
        noticed: [{ file: replay, name: 'a changed template is shown by its place, unless it was declared' }],
      },
      {
        without: 'a replay reaches no network',
        file: 'src/runs/replay.ts',
        find: 'await withoutNetwork(() => evaluate(stage, definition, timeoutMs))',
        replace: '{ value: await evaluate(stage, definition, timeoutMs), refused: [] }',
        noticed: [
          { file: replay, name: 'the network is refused and counted, also on connections that are already open' },
        ],
      },
      {
        without: 'plans are compared',
        file: 'src/runs/replay.ts',
        find: 'const diff = differences(recorded.plan',
        replace: 'const diff = [] ?? differences(recorded.plan',
        noticed: [
          { file: replay, name: 'a changed template is shown by its place, unless it was declared' },
          {
            file: outreach,
            name: 'a replay performs nothing, and shows the place where an edited sequence differs',
          },
        ],
      },
      {
        without: 'both sides of a step are reported',
        file: 'src/runs/replay.ts',
        find: 'originalResult: before, replayedResult: after, ',
        replace: '',
        noticed: [
          {
            file: 'test/contract/runs/replay-sides.test.ts',
            name: 'a dry replay shows of every step what was and what would be',
          },
        ],
      },
    ],
  },
  {
    id: 'E6',
    promise: 'A replay that is not dry performs what is open under the same keys, so that nothing is sent twice',
    removals: [
      {
        without: 'a replay may continue the run',
        file: 'src/runs/engine.ts',
        find: 'if (given.dryRun !== false) return dry',
        replace: 'return dry',
        noticed: [
          {
            file: 'test/contract/runs/replay-performs.test.ts',
            name: 'a replay that is not dry performs what is open',
          },
        ],
      },
      {
        without: 'a run that diverges is not continued',
        file: 'src/runs/engine.ts',
        find: "if (dry.verdict === 'diverged') {",
        replace: 'if (false) {',
        noticed: [
          { file: replay, name: 'a replay that is not dry continues under the same keys, and refuses what diverges' },
        ],
      },
    ],
  },
  {
    id: 'E7',
    promise: 'A crash at any moment never sends twice what was recorded, and never forgets a run',
    removals: [
      {
        without: 'what must not be repeated is on record before it is done',
        file: 'src/runs/perform.ts',
        find: 'return isBlind(work) || work.planFirst',
        replace: 'return false',
        noticed: [{ file: steps, name: 'what may not be repeated blindly is on record before it is done' }],
      },
      {
        without: 'a worker that lost a run writes nothing to it',
        file: 'src/runs/puts.ts',
        find: "from (select 1 from onceonly_runs where id = ? and fence = ? ${dialect.lock('for share')})",
        replace: "from (select 1 from onceonly_runs where id = ? and fence >= 0 * ? ${dialect.lock('for share')})",
        noticed: [
          {
            file: 'test/contract/runs/fences.test.ts',
            name: 'a worker that has not noticed the loss of its runs writes nothing, neither one step nor many',
          },
        ],
      },
      {
        without: 'a run whose worker died is due again',
        file: 'src/runs/holding.ts',
        find: 'due_at = case when ${IS_POISON} then null else ${now} end,',
        replace: 'due_at = null,',
        noticed: [
          {
            file: 'test/contract/runs/takeovers.test.ts',
            name: 'a worker that ends after a recorded step does not park its run',
          },
        ],
      },
      {
        without: 'a start is one run, however often it is asked for',
        file: 'src/runs/writes.ts',
        find: 'where true order by id on conflict (id) do nothing',
        replace: 'where true order by id on conflict (id) do update set started_at = 0',
        noticed: [{ file: steps, name: 'starting is idempotent: one run for one id, a conflict for another input' }],
      },
    ],
  },
]
