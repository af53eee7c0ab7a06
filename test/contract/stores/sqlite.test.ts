import { test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { sqliteSubject } from './subjects.ts'

storeConformance({ test, open: () => sqliteSubject(), histories: 60 })
