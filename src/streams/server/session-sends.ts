import { countOf } from '../parts/count.ts'
import type { RoomLog, SenderState, SendResult, SessionClaim } from '../ports.ts'
import { covers, coversPlace, missingFrom } from '../protocol/position.ts'
import type {
  AckResult,
  CloseReason,
  LogPlace,
  Position,
  ResumeFrame,
  SendFrame,
  ServerFrame,
} from '../protocol/protocol.ts'
import type { Room } from './room.ts'
import { requestOf } from './send-request.ts'

/** A send, and how much of it came over the network. */
export interface ArrivedSend {
  readonly frame: SendFrame
  readonly bytes: number
}

/** What a client says in one session: what the room may accept of it, in which order, and how that is acknowledged. */
export interface SessionSends {
  /** Everything of this client and epoch below it is here. */
  readonly floor: number
  readonly last: LogPlace | null
  /** Whether it is known what the client has behind it. */
  readonly resumed: boolean
  resume(frame: ResumeFrame): Promise<void>
  accept(send: ArrivedSend): void
  /** The room has come further. */
  advanced(): Promise<void>
  /** The room has answered all that it answers for now. */
  answered(): void
}

export interface SessionSendsParts {
  readonly room: Room
  readonly log: RoomLog
  readonly claim: SessionClaim
  /** What the log knew of the client when it entered. */
  readonly sender: SenderState | null
  readonly sendWindow: number
  /** This region and its peers: who may have a log of the room. */
  readonly regions: ReadonlySet<string>
  readonly isOver: () => boolean
  say(frame: ServerFrame): void
  end(why: CloseReason, reason: string): void
  /** A send is answered, and takes no more room. */
  done(bytes: number): void
  /** The client has more behind it than is known of it here. */
  unknown(): Promise<void>
}

export function createSessionSends(parts: SessionSendsParts): SessionSends {
  const { room, log, claim, isOver, say, end } = parts
  let floor = 1
  let last: LogPlace | null = null
  const sends: ArrivedSend[] = []
  /** Handed to the room, and not answered. */
  let underWay = 0
  let lastCseq: number | null = null
  /** What must be here before anything is accepted; null before the first resume. */
  let proof: ResumeFrame | null = null
  let proven = false
  let proving = false
  let lagging = false
  let results: AckResult[] = []
  /** A number was refused: nothing that follows it can be accepted. */
  let refused = false

  function know(sender: { readonly floor: number; readonly last: LogPlace | null } | null): void {
    if (sender === null || sender.floor <= floor) return
    floor = sender.floor
    last = sender.last ?? last
  }

  /** A client's earlier messages must be here before its next one: a region that lacks them is behind, and waits. */
  async function prove(): Promise<void> {
    if (proof === null || proven || proving || isOver()) return
    if (!coversPlace(room.position, proof.acknowledged)) {
      const { log: name, n } = proof.acknowledged ?? { log: room.ownLog, n: 0 }
      return lag({ [name]: n })
    }
    const { position } = room
    proving = true
    try {
      const sender = await log.sender(room.name, claim.client, claim.epoch)
      know(sender)
      if (floor >= proof.pendingFrom) proven = true
      else if (sender === null || proof.acknowledged === null) return await parts.unknown()
    } finally {
      proving = false
    }
    if (proven) drain()
    // What came while the log was asked may have been what was missing.
    else if (room.position !== position) await prove()
  }

  /** Hands to the room what it may accept: in order, and only once everything that the client had seen is here. */
  function drain(): void {
    while (proven && !refused && !isOver()) {
      const [next] = sends
      if (next === undefined) break
      const { frame, bytes } = next
      if (!covers(room.position, frame.seen)) return lag(missingFrom(room.position, frame.seen))
      if (room.full) return end('unavailable', 'too much waits to be written')
      const request = requestOf(frame, claim)
      if (request === null) return end('badFrame', 'the body cannot be fingerprinted')
      sends.shift()
      underWay += 1
      room.send({ request, bytes, answer: (result) => settle(next, result) })
    }
    if (lagging && proven) {
      lagging = false
      say({ kind: 'lag', missing: {} })
    }
  }

  /** What no region can ever bring would be waited for without end. */
  function namesNoRegion(seen: Position): boolean {
    for (const log in seen) {
      const isKnown = countOf(room.position, log) > 0 || parts.regions.has(log.slice(0, log.lastIndexOf('.')))
      if (!isKnown) return true
    }
    return false
  }

  function lag(missing: Position): void {
    if (lagging) return
    lagging = true
    say({ kind: 'lag', missing })
  }

  function settle({ frame: { cseq }, bytes }: ArrivedSend, result: SendResult): void {
    underWay -= 1
    parts.done(bytes)
    switch (result.kind) {
      case 'accepted':
        results.push({ cseq, place: result.place })
        return know({ floor: cseq + 1, last: result.place })
      case 'fenced':
        return end('fenced', 'a newer session of the client has entered')
      case 'gap':
        if (!refused) end('badFrame', `the number ${result.floor} is missing`)
        return
      case 'fork':
        acknowledge()
        return say({ kind: 'nack', cseq, why: 'fork' })
      case 'target-unknown':
        refused = true
        acknowledge()
        return say({ kind: 'nack', cseq, why: 'target-unknown' })
    }
  }

  /** Also before a number is refused: the client gives up everything that it has no answer for. */
  function acknowledge(): void {
    if (results.length === 0) return
    say({ kind: 'ack', floor, ranges: [], results })
    results = []
  }

  know(parts.sender)
  return {
    get floor() {
      return floor
    },
    get last() {
      return last
    },
    get resumed() {
      return proof !== null
    },
    async resume(frame) {
      if (proof !== null) return
      proof = frame
      await prove()
    },
    accept(send) {
      const { cseq } = send.frame
      if (proof === null) return end('badFrame', 'a resume comes before the first send')
      if (lastCseq !== null && cseq !== lastCseq + 1) return end('badFrame', `the next number is ${lastCseq + 1}`)
      if (namesNoRegion(send.frame.seen)) return end('badFrame', '`seen` names a log of no region')
      if (refused) return parts.done(send.bytes)
      if (sends.length + underWay >= parts.sendWindow) return end('flooded', `${parts.sendWindow} sends wait already`)
      lastCseq = cseq
      sends.push(send)
      drain()
    },
    async advanced() {
      if (proven) drain()
      else await prove()
    },
    answered: acknowledge,
  }
}
