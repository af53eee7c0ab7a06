import type { Call } from '../../store/port.ts'
import type { Core } from './core.ts'

/** Whether this Redis keeps what it acknowledges. The store's promises hold as long as it does. */
export interface Durability {
  readonly appendOnly: boolean
  /** `always`, `everysec` or `no`; null where the server does not say. */
  readonly fsync: string | null
  /** `noeviction`, or what it throws away when its memory is full. */
  readonly eviction: string
  readonly replicas: number
  /** What may be lost, in sentences for people; empty when nothing acknowledged is. */
  readonly warnings: readonly string[]
}

export function readDurability(core: Core, call: Call): Promise<Durability> {
  return core.call(call, async (deadline) => {
    const info = fieldsOf(String(await core.connection.send('INFO', ['everything'], deadline, 'no')))
    // Hosted servers often forbid CONFIG.
    const config = await core.connection.send('CONFIG', ['GET', 'appendfsync'], deadline, 'no').catch(() => [])
    const fsync = Array.isArray(config) && typeof config[1] === 'string' ? config[1] : null
    const found = {
      appendOnly: info.get('aof_enabled') === '1',
      fsync,
      eviction: info.get('maxmemory_policy') ?? 'unknown',
      replicas: Number(info.get('connected_slaves') ?? 0),
    }
    return { ...found, warnings: warningsOf(found) }
  })
}

function fieldsOf(info: string): Map<string, string> {
  const pairs = info.split('\r\n').map((line) => line.split(':', 2) as [string, string | undefined])
  return new Map(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
}

function warningsOf({ appendOnly, fsync, eviction, replicas }: Omit<Durability, 'warnings'>): string[] {
  const warnings: string[] = []
  if (!appendOnly) warnings.push('`appendonly` is off: a restart forgets records, and their effects may run again.')
  else if (fsync === null) warnings.push('The server does not report its `appendfsync`: only `always` loses nothing.')
  else if (fsync !== 'always') {
    const what = fsync === 'everysec' ? 'the last second' : 'the last half minute'
    warnings.push(`\`appendfsync\` is \`${fsync}\`: a crash of the machine forgets ${what} of records.`)
  }
  if (eviction !== 'noeviction') {
    warnings.push(`\`maxmemory-policy\` is \`${eviction}\`: records are thrown away when memory is full.`)
  }
  if (replicas > 0) warnings.push('Replicas follow without being waited for: a failover may forget the latest records.')
  return warnings
}
