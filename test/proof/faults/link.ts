import { test } from 'node:test'
import type { Ledger, LedgerEvent, SqlTx } from 'onceonly'
import { createLedger } from 'onceonly'
import { createProxy, endsPostgresAnswer, type Proxy } from '../../../tools/proxy/index.ts'
import type { CrashStore, Place } from '../../support/place.ts'
import { createPlace, openStore, skipOf } from '../../support/place.ts'

/** A ledger that reaches PostgreSQL through a network that fails on demand. */
export interface Link {
  readonly proxy: Proxy
  /** Direct access, to check what happened. */
  readonly place: Place
  readonly store: CrashStore
  readonly once: Ledger<SqlTx>
  readonly events: LedgerEvent[]
  /** Loses the answer to the next request that holds this text. The result says afterwards whether there was one. */
  loseAnswerTo(text: string): { readonly lost: boolean }
}

/** One test with a link of its own, which is gone afterwards. */
export function onLink(title: string, body: (link: Link) => Promise<void>): void {
  test(title, { skip: skipOf('postgres') }, async () => {
    const place = await createPlace('postgres')
    if (place.address.kind !== 'postgres') throw new Error('not the place that was asked for')
    const targetPort = Number(new URL(place.address.url).port)
    const proxy = await createProxy({ targetPort, endsAnswer: endsPostgresAnswer })
    const { store, close } = openStore({ kind: 'postgres', url: proxy.rewrite(place.address.url) }, 'linked')
    const events: LedgerEvent[] = []
    const once = createLedger({ store, background: false, on: (event) => events.push(event) })
    const loseAnswerTo = (text: string) => {
      const loss = { lost: false }
      const when = (request: Buffer) => {
        loss.lost ||= request.includes(text)
        return loss.lost
      }
      proxy.dropNextResponse({ when })
      return loss
    }
    try {
      await body({ proxy, place, store, once, events, loseAnswerTo })
    } finally {
      proxy.resume()
      await proxy.accept()
      await once.stop()
      await close()
      await proxy.stop()
      await place.end()
    }
  })
}
