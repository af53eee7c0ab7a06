import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { createSaga } from 'onceonly/saga'
import { defineImports } from '../../../support/events/saga/imports.ts'
import { assertHandled, onEveryStage, saved } from '../../../support/events/saga/stage.ts'
import { sqlStore } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

onEveryStage(
  'all the way round: commands leave by the outbox, and answers come back to the saga',
  async ({ place }) => {
    const store = sqlStore(place.store)
    const ledger = createLedger({ store, background: false })
    const outbox = createOutbox({ ledger })
    await outbox.prepare()
    const bus = createLocalBus({ store, retryMs: 100 })
    const completed = Promise.withResolvers<void>()
    const saga = createSaga({
      definition: defineImports(),
      ledger,
      dueEveryMs: 200,
      on: (event) => {
        if (event.kind === 'handled' && event.path.includes('Completed')) completed.resolve()
      },
    })
    const parser = createInbox({ ledger, consumer: 'parser' })
    const parsedFiles: string[] = []
    await saga.consume(bus)
    await parser.consume<{ searchId: string; file: string }>(
      bus,
      { topics: ['StartParsing'] },
      async ({ searchId, file }, tools) => {
        parsedFiles.push(file)
        await tools.outbox.add({ topic: 'parsed', key: searchId, body: { searchId, name: file } })
      },
    )
    try {
      // The process that handled it published nothing: the rows are there all the same.
      assertHandled(await saga.handle(saved('s1', ['a', 'b', 'c'])))
      assert.equal((await outbox.status()).pending, 3)
      const relay = createRelay({ ledger: quietLedger(store), publisher: bus })
      try {
        await completed.promise
      } finally {
        await relay.stop()
      }
      assert.deepEqual(parsedFiles.toSorted(), ['a', 'b', 'c'])
      assert.equal((await saga.get('s1'))?.data.parsed.size, 3)
    } finally {
      await saga.stop()
      await parser.stop()
      await bus.stop()
      await ledger.stop()
    }
  },
)
