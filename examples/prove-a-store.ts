import { test } from 'node:test'
import { memoryStore } from 'onceonly/memory'
import type { Subject } from 'onceonly/testing'
import { storeConformance } from 'onceonly/testing'

// Your store stands here. `another`, where it exists, opens a second one on the same data, as another process would.
const open = async (): Promise<Subject> => {
  const store = memoryStore({ testClock: true })
  return { store, close: () => store.stop() }
}

// The kit brings no test runner along: hand it yours.
storeConformance({ test, open, histories: 20 })
