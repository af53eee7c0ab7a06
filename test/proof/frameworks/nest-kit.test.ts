import { test } from 'node:test'
import { openProject } from './project.ts'

const project = await openProject(['kit.ts', 'platforms.ts'])
if (project.missing !== false) test('the conformance kit over Nest', { skip: project.missing }, () => {})
else await project.load('kit.ts')
