import { createRuntime } from '../../../runtime/runtime.ts'
import type { RecordId } from '../../core/identity.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Request } from '../../core/request.ts'
import type { Applied } from '../../store/port.ts'
import type { GroupedClaims } from '../../store/request-group.ts'
import { createRequestGroup } from '../../store/request-group.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import type { Pack } from './decide.ts'
import { decidePack } from './decide.ts'
import { stoppedError } from './errors.ts'
import type { Names } from './names.ts'
import { recordScriptOf } from './script.ts'
import { decodeRecord } from './value.ts'
import type { Watchers } from './watch.ts'

/** Records of one script call: enough to share its cost, few enough not to hold up the server's other clients. */
const PACK_ROWS = 64
/** While the server works on one batch, the next one is on its way; more were no faster. */
const LANES = 2
/** A script call costs little beside its rows: client and server work at the same time on the halves of a small crowd. */
const SPLIT_ROWS = 16

export interface OwnClaims extends GroupedClaims {
  /** Refuses further requests, and waits for those under way. */
  stop(): Promise<void>
}

export function createClaims(core: Core, watchers: Watchers): OwnClaims {
  const group = createRequestGroup(createRuntime(), {
    lanes: LANES,
    splitRows: SPLIT_ROWS,
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
function applyAll(core: Core, requests: readonly Request[], deadline: CallDeadline): Promise<readonly Applied[]> {
  const answers = Array.from<Applied>({ length: requests.length })
  const packs = packsOf(core.names, requests)
  const deciding = packs.map((pack) => decidePack({ core, deadline, answers }, pack))
  const [only] = deciding
  const decided: Promise<unknown> = deciding.length === 1 && only !== undefined ? only : Promise.all(deciding)
  return decided.then(() => answers)
}

function packsOf<Row extends { readonly id: RecordId }>({ bucketOf }: Names, rows: readonly Row[]): Pack<Row>[] {
  const packs: Pack<Row>[] = []
  const filling: (Pack<Row> | undefined)[] = []
  for (let place = 0; place < rows.length; place++) {
    const row = rows[place] as Row
    const bucket = bucketOf(row.id)
    let pack = filling[bucket.number]
    if (pack === undefined || pack.rows.length >= PACK_ROWS) {
      pack = { bucket, rows: [], places: [] }
      filling[bucket.number] = pack
      packs.push(pack)
    }
    pack.rows.push(row)
    pack.places.push(place)
  }
  return packs
}

const readScript = recordScriptOf('no', 'for key = 3, #KEYS do answers[#answers + 1] = found[key - 1] end')

/** The times of several buckets differ by microseconds; the latest is returned. */
async function readRecords(
  core: Core,
  ids: readonly RecordId[],
  deadline: CallDeadline,
): Promise<{ now: number; records: (LedgerRecord | null)[] }> {
  const [anyBucket] = core.names.buckets
  const packs = packsOf(
    core.names,
    ids.map((id) => ({ id })),
  )
  if (packs.length === 0 && anyBucket !== undefined) packs.push({ bucket: anyBucket, rows: [], places: [] })
  const records = Array.from<LedgerRecord | null>({ length: ids.length }).fill(null)
  const times = await Promise.all(
    packs.map(async ({ bucket, rows, places }) => {
      const keys = rows.map(({ id }) => bucket.record + id)
      const { now, answers } = await core.run(readScript, bucket, { keys }, deadline)
      for (const [index, { id }] of rows.entries()) {
        const value = answers[index]
        if (typeof value === 'string') records[places[index] as number] = decodeRecord(id, value)
      }
      return now
    }),
  )
  return { now: Math.max(...times), records }
}
