import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openProject } from './project.ts'

const project = await openProject(['nest.ts', 'interceptors.ts', 'shop.ts', 'platforms.ts', 'kit.ts', 'types.ts'])
if (project.missing !== false) test('onceonly/nest in Nest', { skip: project.missing }, () => {})
else {
  await project.load('nest.ts')
  await project.load('interceptors.ts')
  test('its types hold in a project of Nest', () => assert.deepEqual(project.complaints(), []))
}
