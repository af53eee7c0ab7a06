import { createRuntime } from '../../../runtime/runtime.ts'
import { OnceError } from '../../core/errors.ts'
import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Request } from '../../core/request.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Applied } from '../../store/port.ts'
import type { GroupedClaims } from '../../store/request-group.ts'
import { createRequestGroup } from '../../store/request-group.ts'
import type { Core } from './core.ts'
import { decidePack } from './decide.ts'
import { stoppedError, storeError } from './errors.ts'
import { unfit } from './fit.ts'
import type { Bucket } from './names.ts'
import { scriptOf } from './script.ts'
import { decodeRecord } from './value.ts'
import type { Watchers } from './watch.ts'

/** Records of one script call: enough to share its cost, few enough not to hold up the server's other clients. */
const PACK_ROWS = 64
/** While the server works on one batch, the next one is on its way; more were no faster. */
const LANES = 2

export interface OwnClaims extends GroupedClaims {
  /** Refuses further requests, and waits for those under way. */
  stop(): Promise<void>
}

export function createClaims(core: Core, watchers: Watchers): OwnClaims {
  const group = createRequestGroup(createRuntime(), {
    lanes: LANES,
    stopped: stoppedError,
    flush: (requests, call) => core.flush(call, (deadline) => applyAll(core, requests, deadline)),
  })
  return {
    apply: group.apply,
    onFlush: group.onFlush,
    read: (ids, call) => core.call(call, (deadline) => readRecords(core, ids, deadline)),
    watch: (wake) => watchers.watch(wake),
    stop: group.stop,
  }
}

/** One script call for each bucket, all of them at once. A call that fails takes nothing from the others. */
async function applyAll(core: Core, requests: readonly Request[], deadline: Deadline): Promise<Applied[]> {
  const answers = new Map<RecordId, Applied>()
  const fitting = requests.filter((request) => {
    const error = unfit(request)
    if (error !== null) answers.set(request.id, { error })
    return error === null
  })
  const packs = packsOf(core, fitting)
  await Promise.all(
    packs.map(async ({ bucket, rows }) => {
      try {
        await decidePack({ core, bucket, deadline, answers }, rows)
      } catch (error) {
        const fault = storeError(error, 'maybe')
        for (const { id } of rows) if (!answers.has(id)) answers.set(id, { error: fault })
      }
    }),
  )
  return requests.map(({ id }) => answers.get(id) ?? undecided())
}

/** Made only when it is needed: an error costs more than all the rest of an answer. */
function undecided(): Applied {
  return { error: new OnceError('store_unavailable', 'No step decided a request.') }
}

interface Pack<Row> {
  readonly bucket: Bucket
  readonly rows: Row[]
}

function packsOf<Row extends { readonly id: RecordId }>({ names }: Core, rows: readonly Row[]): Pack<Row>[] {
  const packs: Pack<Row>[] = []
  const filling = new Map<Bucket, Pack<Row>>()
  for (const row of rows) {
    const bucket = names.bucketOf(row.id)
    let pack = filling.get(bucket)
    if (pack === undefined || pack.rows.length >= PACK_ROWS) {
      pack = { bucket, rows: [] }
      filling.set(bucket, pack)
      packs.push(pack)
    }
    pack.rows.push(row)
  }
  return packs
}

const readScript = scriptOf('no', 'for index = FIRST_KEY, #KEYS do answer(redis.call("GET", KEYS[index])) end')

/** The times of several buckets differ by microseconds; the latest is returned. */
async function readRecords(
  core: Core,
  ids: readonly RecordId[],
  deadline: Deadline,
): Promise<{ now: number; records: (LedgerRecord | null)[] }> {
  const [anyBucket] = core.names.buckets
  const packs = packsOf(
    core,
    ids.map((id) => ({ id })),
  )
  if (packs.length === 0 && anyBucket !== undefined) packs.push({ bucket: anyBucket, rows: [] })
  const found = new Map<RecordId, LedgerRecord>()
  const times = await Promise.all(
    packs.map(async ({ bucket, rows }) => {
      const keys = rows.map(({ id }) => bucket.record + id)
      const { now, answers } = await core.run(readScript, bucket, { keys }, deadline)
      for (const [index, { id }] of rows.entries()) {
        const value = answers[index]
        if (typeof value === 'string') found.set(id, decodeRecord(id, value))
      }
      return now
    }),
  )
  return { now: Math.max(...times), records: ids.map((id) => found.get(id) ?? null) }
}
