import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import type express from 'express'
import { expressConformance } from '../../contract/http/express.ts'
import { installOwnPackages } from '../../support/own-packages.ts'

const folder = join(import.meta.dirname, 'express4')
const missing = await installOwnPackages(folder)
if (missing !== false) test('the kit on Express 4', { skip: missing }, () => {})
else {
  const load = createRequire(join(folder, 'package.json'))
  for (const name of ['express', 'express-oldest']) {
    const { version } = load(`${name}/package.json`) as { readonly version: string }
    expressConformance(load(name) as typeof express, (each, body) => test(`Express ${version}: ${each}`, body))
  }
}
