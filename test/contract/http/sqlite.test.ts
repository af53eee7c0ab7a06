import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { sqliteStore } from 'onceonly/sqlite'
import { httpConformance } from 'onceonly/testing'
import { serveFastify } from './fastify.ts'
import { groundOf } from './ground.ts'

httpConformance({
  test,
  serve: serveFastify,
  open: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'onceonly-http-'))
    const store = sqliteStore(join(folder, 'http.db'), { testClock: true })
    return groundOf(store, async () => {
      await store.stop()
      await rm(folder, { recursive: true, force: true })
    })
  },
})
