import { test } from 'node:test'
import { httpConformance } from 'onceonly/testing'
import { serveNode } from './node.ts'

httpConformance({ test, serve: serveNode })
