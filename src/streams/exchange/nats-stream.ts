import { natsExchangeLimits, streamLimits } from '../limits.ts'
import type { RegionHint } from '../ports.ts'
import { ExchangeError } from './errors.ts'
import type { JetStreamConfig, JetStreamInfo, JetStreamLine, JetStreamManager } from './nats-driver.ts'

const NANOS_PER_MS = 1_000_000
const STREAM_NOT_FOUND = 10_059
/** The server has none at all, or none for this account. */
const NOT_ENABLED: readonly unknown[] = [10_076, 10_039]

/** The stream in which all regions keep their hints, for as long as a log goes back. */
export interface HintStream {
  readonly name: string
  readonly manager: JetStreamManager
  /** The stream as it is; made when it is missing, and otherwise left as its owner set it. */
  ensure(): Promise<JetStreamInfo>
}

export async function openHintStream(options: {
  readonly jetstream: JetStreamLine
  readonly namespace: string
  readonly replicas: number
}): Promise<HintStream> {
  const { jetstream, namespace, replicas } = options
  const name = namespace.replaceAll('.', '_')
  try {
    const manager = await jetstream.jetstreamManager(true)
    const ensure = async () => {
      const found = await unlessMissing(manager.streams.info(name))
      return found ?? manager.streams.add(configOf(name, namespace, replicas))
    }
    await ensure()
    return { name, manager, ensure }
  } catch (cause) {
    throw new ExchangeError('broker_unavailable', reasonOf(cause, name), { cause })
  }
}

/** Subjects by region and room, so that a server can say which region may speak for whom. */
export function subjectOf(
  namespace: string,
  { kind, region, room }: Pick<RegionHint, 'kind' | 'region' | 'room'>,
): string {
  return `${namespace}.${kind}.${tokenOf(region)}.${tokenOf(room)}`
}

/** Of all that a name may hold, only a dot means something in a subject; no name holds a percent sign. */
function tokenOf(name: string): string {
  return name.replaceAll('.', '%2E')
}

function configOf(name: string, namespace: string, replicas: number): JetStreamConfig {
  return {
    name,
    description: 'onceonly: hints between regions',
    subjects: [`${namespace}.position.>`, `${namespace}.entered.>`],
    retention: 'limits',
    storage: 'file',
    // Readers pull what is gone, so old messages must never block new ones.
    discard: 'old',
    max_age: streamLimits.retainMs * NANOS_PER_MS,
    max_bytes: natsExchangeLimits.streamBytes,
    max_msgs_per_subject: streamLimits.retainEntries,
    num_replicas: replicas,
  }
}

async function unlessMissing(found: Promise<JetStreamInfo>): Promise<JetStreamInfo | null> {
  try {
    return await found
  } catch (error) {
    if (codeOf(error) === STREAM_NOT_FOUND) return null
    throw error
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

function reasonOf(cause: unknown, stream: string): string {
  if (!(cause instanceof Error)) return `The stream ${stream} cannot be made.`
  if (cause.name === 'JetStreamNotEnabled' || NOT_ENABLED.includes(codeOf(cause))) {
    return 'The NATS server has no JetStream, which regions need: start it with `--jetstream`, or allow it to this account.'
  }
  return `The stream ${stream} cannot be made: ${cause.message}.`
}
