import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PREFERRED_WAIT_MOST_MS, preferredWaitMs } from './prefer.ts'

test('respond-async is found among other preferences, with its wait', () => {
  const cases: readonly (readonly [lines: readonly string[], waitMs: number | null])[] = [
    [[], null],
    [[''], null],
    [['return=minimal'], null],
    [['wait=10'], null],
    [['respond-asynchronously'], null],
    [['respond-async'], 0],
    [['Respond-Async'], 0],
    [['respond-async, wait=10'], 10_000],
    [['wait=3,respond-async'], 3_000],
    [['respond-async', 'wait = 2'], 2_000],
    [['respond-async; foo="a, b"; bar, wait=1; x'], 1_000],
    [['return=minimal, respond-async ,wait=0'], 0],
    [['respond-async, wait=1, wait=9'], 1_000],
    [['foo="respond-async"'], null],
    [['foo="a, respond-async"'], null],
    [['foo="\\", respond-async"'], null],
    [['respond-async, wait=-1'], 0],
    [['respond-async, wait=1.5'], 0],
    [['respond-async, wait=soon'], 0],
    [['respond-async, wait="5"'], 0],
    [['respond-async, wait=99999999999999999999'], PREFERRED_WAIT_MOST_MS],
    [['"', ',,;=', 'respond-async'], 0],
  ]
  for (const [lines, waitMs] of cases) assert.equal(preferredWaitMs(lines), waitMs, lines.join(' | '))
})
