import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { normaliseTarget } from './path.ts'
import { mutations } from './test-mutate.ts'

function pathOf(target: string): string {
  const found = normaliseTarget(target)
  assert.ok('path' in found, `${target}: ${JSON.stringify(found)}`)
  return found.path
}

suite('request target', () => {
  test('dot segments are removed, plain or encoded, and never lead above the root', () => {
    const spellings = {
      '/a/b': [
        '/a/b',
        '/a/./b',
        '/a/x/../b',
        '/./a/b',
        '/a/%2e/b',
        '/a/x/%2E%2e/b',
        '/../a/b',
        '/%2e%2e/a/b',
        '/.%2e/a/b',
      ],
      '/': ['/', '/.', '/..', '/../..', '/%2e%2e/', '/%2e%2e/%2E%2E', '/a/..', '/a/../', '/a/../../..', '/./'],
      '/a/': ['/a/', '/a/.', '/a/b/..', '/a/./', '/a//..', '/a/b/../.'],
      '//b': ['//b', '/a/..//b', '//./b', '//x/../b'],
      '/g': ['/b/c/d/../../../g', '/b/c/../../../g', '/./g', '/../g', '/%67'],
    }
    for (const [path, targets] of Object.entries(spellings))
      for (const target of targets) assert.equal(pathOf(target), path)
  })

  test('only unreserved characters are decoded, and only once', () => {
    assert.equal(pathOf('/%41%7a%30%2D%5f%7e'), '/Az0-_~')
    assert.equal(pathOf('/caf%c3%a9/%2f%3a%3F%23%25%00%5c%3b'), '/caf%C3%A9/%2F%3A%3F%23%25%00%5C%3B')
    assert.equal(pathOf('/%252e%252e/a'), '/%252e%252e/a')
    assert.equal(pathOf('/%25%32%65'), '/%252e')
  })

  test('what could be two resources stays two', () => {
    const different = ['/a/b', '/a%2Fb', '//a/b', '/a//b', '/a/b/', '/a/..%2Fb', '/a%5Cb', '/a/...', '/a/..;/b', '/A/b']
    const more = [
      '/a/%252e%252e/b',
      '/a/%2e%2e%2fb',
      '/a%2f..%2fb',
      '/a/.b',
      '/a/b.',
      '/a:b',
      '/a%3Ab',
      '/a/b%00',
      '/a/b%20',
    ]
    const paths = [...different, ...more.filter((each) => each !== '/a/%2e%2e%2fb')].map(pathOf)
    assert.equal(new Set(paths).size, paths.length)
    assert.equal(pathOf('/a/%2e%2e%2fb'), '/a/..%2Fb')
  })

  test('the query keeps its order and its dots', () => {
    assert.deepEqual(normaliseTarget('/a?b=%7e&a=%c3+x&b=/../y?'), { path: '/a', query: '?b=~&a=%C3+x&b=/../y?' })
    assert.deepEqual(normaliseTarget('/a'), { path: '/a', query: '' })
    assert.deepEqual(normaliseTarget('/a?'), { path: '/a', query: '?' })
    assert.deepEqual(normaliseTarget('/a?x={"y":[1]}|\\^`'), { path: '/a', query: '?x={"y":[1]}|\\^`' })
    assert.notDeepEqual(normaliseTarget('/a?a=1&b=2'), normaliseTarget('/a?b=2&a=1'))
    assert.deepEqual(normaliseTarget('/a%3Fb?c'), { path: '/a%3Fb', query: '?c' })
  })

  test('an absolute form is its path and query', () => {
    assert.deepEqual(normaliseTarget('http://example.com/a/../b?c'), { path: '/b', query: '?c' })
    assert.deepEqual(normaliseTarget('HTTPS://u@[::1]:8443'), { path: '/', query: '' })
    assert.deepEqual(normaliseTarget('http://example.com?q=http://x/'), { path: '/', query: '?q=http://x/' })
    assert.deepEqual(normaliseTarget('http://h//x'), { path: '//x', query: '' })
    assert.deepEqual(normaliseTarget('/http://h/x'), { path: '/http://h/x', query: '' })
  })

  test('what is no target of a command is refused', () => {
    const cases: [string, RegExp][] = [
      ['', /neither a path/],
      ['*', /neither a path/],
      ['example.com:443', /neither a path/],
      ['a/b', /neither a path/],
      ['?a', /neither a path/],
      ['http:///a', /neither a path/],
      ['ftp://h/a', /neither a path/],
      ['javascript:alert(1)', /neither a path/],
      ['/a#b', /fragment \(offset 2\)/],
      ['/a?b#', /fragment/],
      ['http://h#f', /fragment/],
      ['/a%', /percent-encoding at offset 2/],
      ['/a%2', /percent-encoding at offset 2/],
      ['/%zz', /percent-encoding at offset 1/],
      ['/a?b=100%&c', /percent-encoding at offset 8/],
      ['/%%32%65', /percent-encoding at offset 1/],
      ['/%2\u0665', /visible ASCII/],
      ['/a b', /visible ASCII at offset 2/],
      ['/a\r\nb', /visible ASCII at offset 2/],
      ['/\0', /visible ASCII/],
      ['/é', /visible ASCII/],
      ['/a\\..\\b', /backslash at offset 2/],
      ['http://h\\@evil/a', /backslash/],
      [`/${'a'.repeat(16_384)}`, /longer than 16384/],
    ]
    for (const [target, problem] of cases) {
      const found = normaliseTarget(target)
      assert.ok('problem' in found, target)
      assert.match(found.problem, problem)
    }
    assert.ok('path' in normaliseTarget(`/${'a'.repeat(16_383)}`))
  })

  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '/',
      '..',
      '.',
      '%2e',
      '%2E',
      '%2f',
      '%5c',
      '%25',
      '%25%32%65',
      '%c3',
      '?',
      '&',
      '=',
      ';',
      ':',
      '@',
    ),
    fc.stringMatching(/^[a-z~!$'()*+,-]{1,2}$/),
  )
  const targets = fc.array(piece, { maxLength: 24 }).map((pieces) => `/${pieces.join('')}`)

  test('property: a normal target is its own normal form', () => {
    fc.assert(
      fc.property(targets, (target) => {
        const found = normaliseTarget(target)
        assert.ok('path' in found)
        assert.deepEqual(normaliseTarget(found.path + found.query), found)
        assert.doesNotMatch(found.path, /^[^/]|(^|\/)\.\.?(\/|$)|%([a-f].|.[a-f])|%(2E|41|7E)/)
      }),
      { numRuns: 2_000 },
    )
  })

  test('property: the same resource as for the URL parser of the platform', () => {
    fc.assert(
      fc.property(
        targets.filter((target) => !target.startsWith('//')),
        (target) => {
          const { pathname, search } = new URL(`http://host${target}`)
          const ours = normaliseTarget(target)
          const theirs = normaliseTarget(pathname + search)
          assert.ok('path' in ours && 'path' in theirs)
          // The platform encodes an apostrophe in queries and drops the mark of an empty one; nothing else differs.
          const query = ours.query === '?' ? '' : ours.query.replaceAll("'", '%27')
          assert.deepEqual(theirs, { path: ours.path, query })
          assert.equal(new URL(`http://host${ours.path}`).pathname, ours.path)
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('property: any encoding of unreserved characters is the same target', () => {
    fc.assert(
      fc.property(targets, fc.infiniteStream(fc.nat(2)), (target, choices) => {
        const encoded = target.replace(/%..|[A-Za-z0-9._~-]/g, (char) => {
          const choice = choices.next().value
          if (char.startsWith('%')) return choice === 0 ? char.toUpperCase() : char.toLowerCase()
          const hex = `%${char.charCodeAt(0).toString(16)}`
          return choice === 0 ? char : choice === 1 ? hex : hex.toUpperCase()
        })
        assert.deepEqual(normaliseTarget(encoded), normaliseTarget(target))
      }),
      { numRuns: 2_000 },
    )
  })

  test('fuzz: 20 000 targets are normal or refused', () => {
    const seeds = [
      '/v1/orders/42?expand=a&x=%7e',
      '/a/%2e%2e/./..//b%2fc',
      'http://example.com:80/a?b',
      '/%c3%a9/%25%32%65',
    ]
    let valid = 0
    for (const bytes of mutations(seeds, 20_000, 2)) {
      const found = normaliseTarget(bytes.toString('latin1'))
      if ('problem' in found) assert.ok(found.problem.endsWith('.'))
      else {
        valid++
        assert.ok(found.path.startsWith('/') && !found.path.split('/').some((each) => each === '.' || each === '..'))
        assert.deepEqual(normaliseTarget(found.path + found.query), found)
      }
    }
    assert.ok(valid > 1_000 && valid < 19_000, `${valid} valid`)
  })
})
