import { test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { memorySubject } from './subjects.ts'

storeConformance({ test, open: () => memorySubject(), histories: 200 })
