import { test } from 'node:test'
import { httpConformance } from 'onceonly/testing'
import { serveFastify } from './fastify.ts'

httpConformance({ test, serve: serveFastify })
