import type {
  ClientFrame,
  DeliverFrame,
  HelloFrame,
  ResumeFrame,
  SendFrame,
  ServerFrame,
} from '../protocol/protocol.ts'
import { PROTOCOL_VERSION } from '../protocol/protocol.ts'
import type { SessionBounds } from '../session-limits.ts'
import type { Lines } from './line.ts'

/** One session of a client, from its hello on: one generation. */
export interface Connection {
  /** Deliveries flow, and messages may be sent. */
  readonly live: boolean
  resume(frame: ResumeFrame): void
  /** The answer to the resume has come. */
  resumed(): void
  send(frame: SendFrame): void
  /** An entry is done with. */
  taken(): void
  close(): void
}

export interface ConnectionOptions {
  readonly lines: Lines
  readonly region: string
  readonly hello: Omit<HelloFrame, 'kind' | 'version'>
  readonly bounds: SessionBounds
  /** The hello has left. */
  opened(): void
  received(frame: ServerFrame): void
  /** Something came that belongs behind what did not come. */
  overtaken(): void
  closed(code: number | null, reason: string): void
}

/** Credit is given for a quarter of what may be ahead: often enough to keep it flowing, seldom enough to cost nothing. */
const CREDIT_SHARE = 4

export function createConnection(options: ConnectionOptions): Connection {
  const { bounds, hello } = options
  let live = false
  let over = false
  /** Resumes that are not answered: what comes before the last answer belongs to an earlier one. */
  let resuming = 0
  /** Bytes of what came and was not taken: those of a frame with its last entry, as the region counts them. */
  const ahead: number[] = []
  let taken = 0
  let credited = 0
  /** Of the frames that were taken since the last credit. */
  let bytes = 0
  /** Up to here the entries of this session came without a gap. */
  let come = 0

  function say(frame: ClientFrame): void {
    if (!over) channel.send(frame)
  }

  function end(code: number | null, reason: string): void {
    if (over) return
    over = true
    live = false
    options.closed(code, reason)
  }

  function received(frame: ServerFrame, frameBytes: number): void {
    if (over) return
    if (frame.kind === 'deliver') {
      for (let left = frame.entries.length; left > 0; left--) ahead.push(left > 1 ? 0 : frameBytes)
    }
    if (frame.kind === 'resumed' || frame.kind === 'reset') resuming = Math.max(0, resuming - 1)
    if (frame.kind === 'resumed' && resuming > 0) return
    if (resuming > 0 && (frame.kind === 'deliver' || frame.kind === 'order')) {
      if (frame.kind === 'deliver') for (const _ of frame.entries) note()
      return
    }
    if (frame.kind === 'resumed') come = frame.sent
    if (frame.kind === 'deliver' && !isSafe(frame)) {
      for (const _ of frame.entries) note()
      return options.overtaken()
    }
    options.received(frame)
  }

  /** A copy stands behind its first only in the order of its region: it is of no use where something is missing before it. */
  function isSafe({ after, entries }: DeliverFrame): boolean {
    if (after > come) return entries.every(({ kind }) => kind === 'message')
    come = Math.max(come, after + entries.length)
    return true
  }

  function note(): void {
    taken += 1
    bytes += ahead.shift() ?? 0
    if (taken - credited < bounds.aheadEntries / CREDIT_SHARE && bytes < bounds.aheadBytes / CREDIT_SHARE) return
    credited = taken
    bytes = 0
    say({ kind: 'credit', taken })
  }

  const channel = options.lines.open(options.region, {
    opened() {
      say({ kind: 'hello', version: PROTOCOL_VERSION, ...hello })
      options.opened()
    },
    received,
    closed: end,
  })

  return {
    get live() {
      return live && !over
    },
    resume(frame) {
      resuming += 1
      say(frame)
    },
    resumed() {
      live = true
    },
    send: say,
    taken: note,
    close() {
      if (over) return
      over = true
      channel.close()
    },
  }
}
