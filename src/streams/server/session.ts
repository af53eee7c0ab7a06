import { OnceError } from '../../ledger/core/errors.ts'
import { countOf } from '../parts/count.ts'
import type { SessionClaim } from '../ports.ts'
import { covers } from '../protocol/position.ts'
import type {
  ClientFrame,
  CloseReason,
  HelloFrame,
  ResetFrame,
  ResetReason,
  ResumeFrame,
  SendFrame,
  ServerFrame,
} from '../protocol/protocol.ts'
import { PROTOCOL_VERSION } from '../protocol/protocol.ts'
import { isPublisherName } from '../protocol/published.ts'
import type { ChannelLink } from './connection.ts'
import type { Feed } from './feed.ts'
import { createFeed } from './feed.ts'
import type { OrderFeed } from './order-feed.ts'
import { createOrderFeed } from './order-feed.ts'
import type { Room } from './room.ts'
import type { RoomOrder } from './room-order.ts'
import type { OpenSession, SessionHost } from './session-host.ts'
import type { SessionSends } from './session-sends.ts'
import { createSessionSends } from './session-sends.ts'

/** A frame, and how much of it came over the network. */
interface Arrived {
  readonly frame: ClientFrame
  readonly bytes: number
}

export function createSession(host: SessionHost, link: ChannelLink): OpenSession {
  const { bounds, log } = host
  const frames: Arrived[] = []
  /** Of everything that has come and is neither answered nor done with. */
  let heldBytes = 0
  let working = false
  let over = false
  /** What the client asked for: its rights may be asked for again. */
  let asked: HelloFrame | null = null
  let claim: SessionClaim | null = null
  let room: Room | null = null
  let order: RoomOrder | null = null
  let feed: Feed | null = null
  let orderFeed: OrderFeed | null = null
  let leave = () => {}
  /** The region before this one was asked to end what it has of this client. */
  let fenced = false
  /** How often the room fell in with a peer. */
  let adoptions = 0
  let sends: SessionSends | null = null

  function say(frame: ServerFrame): void {
    if (!over) link.send(frame)
  }

  function end(why: CloseReason, reason: string): void {
    if (over) return
    link.end(why, reason)
    closed()
  }

  function hold(bytes: number): void {
    heldBytes += bytes
    link.held(bytes)
  }

  function closed(): void {
    if (over) return
    over = true
    leave()
    feed?.stop()
    orderFeed?.stop()
    hold(-heldBytes)
    host.ended(self)
  }

  function failed(error: unknown): void {
    host.problem(error)
    end('unavailable', 'the region cannot answer now')
  }

  async function work(): Promise<void> {
    for (let next = frames.shift(); next !== undefined && !over; next = frames.shift()) {
      const { frame, bytes } = next
      try {
        if (frame.kind === 'send') {
          if (sends === null) end('badFrame', 'the first frame is a hello')
          else sends.accept({ frame, bytes })
        } else {
          await take(frame)
          hold(-bytes)
        }
      } catch (error) {
        failed(error)
      }
    }
    working = false
  }

  function take(frame: Exclude<ClientFrame, SendFrame>): Promise<void> | void {
    if (frame.kind === 'hello') return hello(frame)
    if (claim === null) return end('badFrame', 'the first frame is a hello')
    switch (frame.kind) {
      case 'resume':
        return resume(frame)
      case 'credit':
        if (feed?.credit(frame.taken) !== true) end('badFrame', 'more was taken than was sent')
        return
      // The connection answers them.
      case 'leave':
      case 'ping':
    }
  }

  async function hello(frame: HelloFrame): Promise<void> {
    if (claim !== null) return end('badFrame', 'there is one hello in a session')
    if (frame.version !== PROTOCOL_VERSION) return end('badFrame', `version ${PROTOCOL_VERSION} is spoken here`)
    if (isPublisherName(frame.client)) return end('notAllowed', 'a name like this belongs to a server')
    asked = frame
    if (await refused(frame)) return
    const { client, epoch, generation, instance } = frame
    const name = host.roomOf(frame.room)
    const found = await host.room(name)
    if (found === null) return end('unavailable', 'the region has as many rooms open as it can keep')
    const entered = await log.enter(name, { client, epoch, generation, instance })
    if (over) return
    if (entered.kind === 'fenced') return end('fenced', `generation ${entered.generation} has entered`)
    if (entered.kind === 'cloned') return end('cloned', 'another process has this identity')
    claim = { client, epoch, generation, instance }
    room = found.room
    order = found.order
    sends = createSessionSends({
      room,
      log,
      claim,
      sender: entered.sender,
      sendWindow: bounds.sendWindow,
      regions: host.regions,
      isOver: () => over,
      say,
      end,
      done: (bytes) => hold(-bytes),
      unknown: () => reset('unknown'),
    })
    feed = createFeed({
      room,
      log,
      link,
      bounds,
      generation,
      failed,
      expired: () => void reset('expired').catch(failed),
    })
    if (order !== null) {
      orderFeed = createOrderFeed({ order, link, bounds, generation, failed })
    }
    leave = room.join({ advanced, answered: sends.answered, adopted })
    host.entered(self, claim)
    const { position } = room
    const { floor, last } = sends
    say({ kind: 'welcome', version: PROTOCOL_VERSION, region: host.region, generation, position, floor, last })
  }

  async function refused(frame: HelloFrame): Promise<boolean> {
    const refusal = await host.refuses(frame)
    if (typeof refusal === 'string') end('notAllowed', refusal)
    else if (refusal !== null) end('cloned', refusal.taken)
    return refusal !== null
  }

  /** Also while the first answer is awaited, which may be from before the change. */
  async function review(): Promise<boolean> {
    if (asked === null || over) return false
    try {
      return await refused(asked)
    } catch (error) {
      failed(error)
      return true
    }
  }

  async function resume(frame: ResumeFrame): Promise<void> {
    if (room === null || claim === null || sends === null) return
    if (!fenced && !(await fence(frame.previousRegion))) return
    const before = adoptions
    const own = { [room.ownLog]: countOf(frame.position, room.ownLog) }
    // Another process of this region may be further, so the log is read before the client's position is refused.
    if (!covers(room.position, own)) await room.catchUp()
    if (!covers(room.position, own)) return end('futurePosition', `${room.ownLog} has not come to ${own[room.ownLog]}`)
    const found = await log.find(room.name, frame.position)
    if (found.kind === 'expired') return reset('expired')
    const { generation } = claim
    const { position, ordered } = frame
    const { floor, last } = sends
    say({ kind: 'resumed', generation, position, ordered, floor, last, sent: feed?.sent ?? 0 })
    host.report('resumed')
    feed?.start(found.at, position)
    orderFeed?.start(ordered)
    await sends.resume(frame)
    if (adoptions !== before) await startOver()
  }

  /**
   * Nothing is replayed while the client's last session may still be at work elsewhere. Once in a session; false when it
   * is this one that is old.
   */
  async function fence(previousRegion: string | null): Promise<boolean> {
    if (room === null || claim === null) return false
    fenced = true
    const answer = await host.fence(previousRegion, { room: room.name, claim })
    if (answer?.kind === 'fenced') end('fenced', `generation ${answer.generation} has entered in ${previousRegion}`)
    if (answer?.kind === 'cloned') end('cloned', `another process has this identity in ${previousRegion}`)
    return !over
  }

  async function reset(why: ResetReason): Promise<void> {
    if (room === null || claim === null || sends === null || over) return
    feed?.stop()
    orderFeed?.stop()
    // The head is read before the snapshot is taken, so that nothing falls between.
    const head = { position: room.position, ordered: order?.tail.head ?? 0 }
    const snapshot = fitting(await host.snapshot(room.name))
    const from = snapshot === null ? await oldest(room.name) : head
    const { floor, last } = sends
    say({ kind: 'reset', generation: claim.generation, why, floor, last, ...from, snapshot })
    host.report('reset')
  }

  /**
   * A client would refuse a frame that is too large, and request it again forever: it gets what the log has instead.
   */
  function fitting(snapshot: unknown): unknown {
    const bytes = JSON.stringify(snapshot).length
    if (bytes <= bounds.snapshotBytes) return snapshot
    const most = bounds.snapshotBytes
    host.problem(
      new OnceError('bad_input', `The snapshot of ${room?.name} takes ${bytes} bytes; ${most} are the most.`),
    )
    return null
  }

  /** Where everything begins that the log still has. */
  async function oldest(name: string): Promise<Pick<ResetFrame, 'position' | 'ordered'>> {
    const found = await log.find(name, {})
    return { position: found.kind === 'expired' ? found.removed : {}, ordered: 0 }
  }

  function adopted(): void {
    adoptions += 1
    // A client that has not resumed yet learns it then.
    if (sends?.resumed === true) startOver().catch(failed)
  }

  /** A client that lacks what a peer had removed would wait for it forever. */
  async function startOver(): Promise<void> {
    if (room === null || feed === null) return
    const found = await log.find(room.name, feed.position)
    if (found.kind === 'expired') await reset('expired')
  }

  function advanced(): void {
    feed?.pump()
    sends?.advanced().catch(failed)
  }

  function received(frame: ClientFrame, bytes: number): void {
    if (over) return
    if (frames.length >= bounds.sendWindow) return end('flooded', 'frames come faster than they are taken')
    if (heldBytes > 0 && heldBytes + bytes > bounds.sendBytes) return end('flooded', `${heldBytes} bytes wait already`)
    hold(bytes)
    frames.push({ frame, bytes })
    if (working) return
    working = true
    void work()
  }

  const self: OpenSession = {
    get claim() {
      return claim
    },
    get room() {
      return room
    },
    user: host.user,
    received,
    review,
    drained() {
      feed?.pump()
      orderFeed?.pump()
    },
    ordered: () => orderFeed?.pump(),
    forked: (cseq) => say({ kind: 'nack', cseq, why: 'fork' }),
    closed,
    end,
  }
  return self
}
