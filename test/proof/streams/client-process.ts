import { sqliteStore } from 'onceonly/sqlite'
import { createFileStorage, createSqlStorage } from 'onceonly/stream/server'
import { participate } from '../../support/streams/world.ts'

/** What a test starts, and kills: one client as a process of its own, with a storage that outlives it. */
export type ClientTask =
  /** Keeps one message for sending, says so, and waits for its end. */
  | { readonly kind: 'sends'; readonly url: string; readonly path: string; readonly text: string | null }
  /** Writes down what it sees, in the transaction of its position; dies in the middle of the message with this text. */
  | { readonly kind: 'applies'; readonly url: string; readonly path: string; readonly deadly: string | null }

const task = JSON.parse(process.argv[2] ?? '') as ClientTask

switch (task.kind) {
  case 'sends': {
    const storage = createFileStorage({ path: task.path })
    const { client } = await participate(() => task.url, { regions: ['eu'], storage })
    if (task.text !== null) await client.send({ text: task.text })
    console.log('kept')
    break
  }
  case 'applies': {
    const store = sqliteStore(task.path)
    await store.sql.query('create table if not exists applied (text text not null)')
    const storage = createSqlStorage({ store, name: 'bot' })
    await participate(() => task.url, {
      regions: ['eu'],
      storage,
      mode: 'effectively-once',
      receiver: {
        async message({ body }) {
          const { text } = body as { text: string }
          await storage.tx.query('insert into applied (text) values (?)', [text])
          if (text === task.deadly) process.kill(process.pid, 'SIGKILL')
        },
      },
    })
    console.log('kept')
  }
}
