import type { MessageIdentity } from '../../../src/streams/protocol/protocol.ts'
import { identityText } from '../../../src/streams/protocol/protocol.ts'

/** A rule that was broken, and how. */
export interface StreamFailure {
  readonly rule: StreamRule
  readonly atMs: number
  readonly text: string
}

export type StreamRule =
  /** A client that applies effectively once applied a message twice, or one life of a client was shown it twice. */
  | 'once'
  /** A message was applied before something that its sender had been shown when it wrote it. */
  | 'causes'
  /** A sender's messages were applied in another order than it wrote them. */
  | 'sender_order'
  /** Two participants know different final places, or a place was given twice, or above a cause. */
  | 'one_order'
  /** A message acknowledged to its client is missing, or is not applied by every participant. */
  | 'nothing_lost'
  /** A session that a newer one had fenced wrote to the log. */
  | 'fence'
  /** A region shows an identity twice. */
  | 'copies'
  /** No client should have had to give up its identity. */
  | 'identity'
  /** After everything was healed, not all participants came to rest in time. */
  | 'progress'
  /** The simulation itself, or a receiver under test, threw. */
  | 'sound'

interface Utterance {
  readonly uid: number
  readonly sender: string
  /** How many its sender had written before. */
  readonly index: number
  /** What its sender was shown since its last message. Earlier causes stand before that one. */
  readonly causes: readonly number[]
}

interface Witness {
  readonly applied: Set<number>
  /** By sender, the last that was applied. */
  readonly last: Map<string, number>
  /** The life in which a message was shown last. */
  readonly shownIn: Map<number, number>
  readonly places: Map<string, number>
}

/** Watches a simulated room, and knows what each participant must have seen. */
export interface StreamJudge {
  readonly failure: StreamFailure | null
  readonly accepted: ReadonlySet<number>
  fail(rule: StreamRule, text: string): void
  said(utterance: Utterance): void
  /** A region has it durably, and says so. */
  tookIn(uid: number, identity: MessageIdentity): void
  acknowledged(uid: number): void
  shown(client: string, life: number, uid: number): void
  applied(client: string, uid: number, mayRepeat: boolean): void
  /** The client starts over from a snapshot of all that was accepted. */
  startedOver(client: string, uids: readonly number[]): void
  ordered(client: string, identity: MessageIdentity, place: number): void
  /** The named clients have everything that was accepted, with its final place; where nothing expires. */
  complete(clients: readonly string[]): string | null
  end(clients: readonly string[]): void
}

export function createStreamJudge(nowMs: () => number, expires: boolean): StreamJudge {
  const utterances = new Map<number, Utterance>()
  const accepted = new Set<number>()
  const acknowledged = new Set<number>()
  const uids = new Map<string, number>()
  const witnesses = new Map<string, Witness>()
  const order = new Map<number, string>()
  const placeOf = new Map<string, number>()
  let failure: StreamFailure | null = null

  function fail(rule: StreamRule, text: string): void {
    failure ??= { rule, atMs: nowMs(), text }
  }

  function witness(client: string): Witness {
    let known = witnesses.get(client)
    if (known === undefined) {
      known = { applied: new Set(), last: new Map(), shownIn: new Map(), places: new Map() }
      witnesses.set(client, known)
    }
    return known
  }

  function checkPlaces(): void {
    const placeOfUid = new Map<number, number>()
    for (const [identity, place] of placeOf) {
      const uid = uids.get(identity)
      if (uid === undefined) return fail('one_order', `${identity} has a place, and no client wrote it`)
      placeOfUid.set(uid, place)
    }
    const last = new Map<string, number>()
    for (const { uid, sender, causes } of utterances.values()) {
      const place = placeOfUid.get(uid)
      if (place === undefined) continue
      // They were noted in the order in which they were written.
      if (place < (last.get(sender) ?? 0)) return fail('one_order', `${uid} of ${sender} stands above an earlier one`)
      last.set(sender, place)
      // Where messages expire, one may be gone before it got a place, and then never gets one.
      const above = causes.find((cause) => (placeOfUid.get(cause) ?? (expires ? 0 : Number.POSITIVE_INFINITY)) > place)
      if (above !== undefined) return fail('one_order', `message ${uid} has place ${place}, above its cause ${above}`)
    }
  }

  return {
    get failure() {
      return failure
    },
    accepted,
    fail,
    said: (utterance) => void utterances.set(utterance.uid, utterance),
    tookIn(uid, identity) {
      accepted.add(uid)
      uids.set(identityText(identity), uid)
    },
    acknowledged: (uid) => void acknowledged.add(uid),
    shown(client, life, uid) {
      const { shownIn } = witness(client)
      if (shownIn.get(uid) === life) fail('once', `${client} was shown message ${uid} twice in one life`)
      shownIn.set(uid, life)
    },
    applied(client, uid, mayRepeat) {
      const { applied, last } = witness(client)
      if (applied.has(uid)) {
        if (!mayRepeat) fail('once', `${client} applied message ${uid} twice`)
        return
      }
      const utterance = utterances.get(uid)
      if (utterance === undefined) return fail('sound', `${client} got message ${uid}, which no client wrote`)
      const { index, causes, sender } = utterance
      if (index < (last.get(sender) ?? 0)) return fail('sender_order', `${client} applied ${uid} of ${sender} too late`)
      last.set(sender, index)
      const missing = causes.find((cause) => !applied.has(cause))
      if (missing !== undefined)
        return fail('causes', `${client} applied ${uid} of ${sender} before its cause ${missing}`)
      applied.add(uid)
    },
    startedOver(client, given) {
      const { applied, last } = witness(client)
      for (const uid of given) {
        applied.add(uid)
        const utterance = utterances.get(uid)
        if (utterance !== undefined)
          last.set(utterance.sender, Math.max(last.get(utterance.sender) ?? 0, utterance.index))
      }
    },
    ordered(client, identity, place) {
      const text = identityText(identity)
      const known = order.get(place)
      if (known === undefined) order.set(place, text)
      else if (known !== text) fail('one_order', `place ${place} is ${known}, and ${text} for ${client}`)
      const other = placeOf.get(text)
      if (other === undefined) placeOf.set(text, place)
      else if (other !== place) fail('one_order', `${text} has the places ${other} and ${place}`)
      witness(client).places.set(text, place)
    },
    complete(clients) {
      for (const client of clients) {
        const { applied, places } = witness(client)
        if (applied.size !== accepted.size) return `${client} applied ${applied.size} of ${accepted.size}`
        if (!expires && places.size !== accepted.size)
          return `${client} knows ${places.size} places of ${accepted.size}`
      }
      return null
    },
    end(clients) {
      for (const uid of acknowledged)
        if (!accepted.has(uid)) return fail('nothing_lost', `${uid} was acknowledged and is nowhere`)
      for (const client of clients) {
        const { applied } = witness(client)
        for (const uid of accepted) if (!applied.has(uid)) return fail('nothing_lost', `${client} never applied ${uid}`)
      }
      checkPlaces()
    },
  }
}
