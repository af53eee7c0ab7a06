import { testBrowserParts } from '../../support/browser-parts.ts'

testBrowserParts()
