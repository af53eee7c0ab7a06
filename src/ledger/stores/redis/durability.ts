import type { Call } from '../../store/port.ts'
import type { Core } from './core.ts'
import { infoOf, KEEPS } from './info.ts'

/** Something that the settings of a server may lose, and what prevents it. */
export interface DurabilityRisk {
  readonly found: string
  readonly advice: string
  /** `danger`: a single crash loses what was acknowledged. `warning`: less, or only what no setting of Redis prevents. */
  readonly verdict: 'warning' | 'danger'
}

/** Whether this Redis keeps what it acknowledges. The store's promises hold as long as it does. */
export interface Durability {
  /** False as soon as one of the nodes that hold records has it off. */
  readonly appendOnly: boolean
  /** `always`, `everysec` or `no`; null where the server does not say. */
  readonly fsync: string | null
  /** `noeviction`, or what it throws away when its memory is full. */
  readonly eviction: string
  /** Of the node that has most of them. */
  readonly replicas: number
  /** `min-replicas-to-write`: with fewer replicas that follow closely, writes are refused. Null where the server does not say. */
  readonly minReplicas: number | null
  /** What may be lost, and what to do; empty when nothing acknowledged is. */
  readonly risks: readonly DurabilityRisk[]
  /** The same in sentences for people, without advice. */
  readonly warnings: readonly string[]
}

export function readDurability(core: Core, call: Call): Promise<Durability> {
  return core.call(call, async (deadline) => {
    const infos = await Promise.all(core.names.buckets.map((bucket) => infoOf(core.connection, bucket, deadline)))
    // Hosted servers often forbid CONFIG, and a script may not ask for it: in a cluster, one node answers for all.
    const setting = async (name: string): Promise<string | null> => {
      const config = await core.connection.send('CONFIG', ['GET', name], deadline, 'no').catch(() => [])
      return Array.isArray(config) && typeof config[1] === 'string' ? config[1] : null
    }
    const minReplicas = await setting('min-replicas-to-write')
    const evictions = infos.map((info) => info.get('maxmemory_policy') ?? 'unknown')
    const found = {
      appendOnly: infos.every((info) => info.get('aof_enabled') === '1'),
      fsync: await setting('appendfsync'),
      eviction: evictions.find((policy) => policy !== KEEPS) ?? KEEPS,
      replicas: Math.max(...infos.map((info) => Number(info.get('connected_slaves') ?? 0))),
      minReplicas: minReplicas === null ? null : Number(minReplicas),
    }
    const risks = risksOf(found)
    return { ...found, risks, warnings: risks.map((risk) => risk.found) }
  })
}

type Found = Omit<Durability, 'risks' | 'warnings'>

function risksOf(found: Found): DurabilityRisk[] {
  return [...fileRisks(found), ...evictionRisks(found), ...replicaRisks(found)]
}

function fileRisks({ appendOnly, fsync }: Found): DurabilityRisk[] {
  const advice = 'Set `appendonly yes` and `appendfsync always`.'
  const risk = (text: string): DurabilityRisk[] => [{ found: text, advice, verdict: 'danger' }]
  if (!appendOnly) return risk('`appendonly` is off: a restart forgets records, and their effects may run again.')
  if (fsync === 'always') return []
  if (fsync === null) return risk('The server does not report its `appendfsync`: only `always` loses nothing.')
  const what = fsync === 'everysec' ? 'the last second' : 'the last half minute'
  return risk(`\`appendfsync\` is \`${fsync}\`: a crash of the machine forgets ${what} of records.`)
}

function evictionRisks({ eviction }: Found): DurabilityRisk[] {
  if (eviction === KEEPS) return []
  const found = `\`maxmemory-policy\` is \`${eviction}\`: records are thrown away when memory is full.`
  return [{ found, advice: `Set \`maxmemory-policy ${KEEPS}\`.`, verdict: 'danger' }]
}

/** Redis never waits for its replicas by itself. The settings only bound how much a failover forgets. */
function replicaRisks({ replicas, minReplicas }: Found): DurabilityRisk[] {
  if (replicas === 0) return []
  if (minReplicas === 0) {
    const found = 'A master that is cut off from its replicas accepts writes, and a failover forgets all of them.'
    const advice =
      'Set `min-replicas-to-write 1` and `min-replicas-max-lag 10`: then it refuses them after ten seconds.'
    return [{ found, advice, verdict: 'danger' }]
  }
  const found = 'Replicas follow without being waited for: a failover may forget the latest records.'
  const advice =
    'Keep effects that must not run twice in PostgreSQL, or have them honour the effect key; `WAIT` only shortens the gap.'
  return [{ found, advice, verdict: 'warning' }]
}
