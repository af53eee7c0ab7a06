import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common'
import {
  Controller,
  HttpException,
  Inject,
  Module,
  Post,
  RequestTimeoutException,
  UseInterceptors,
} from '@nestjs/common'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { Idempotent, OnceonlyModule } from 'onceonly/nest'
import { retry, throwError, timeout } from 'rxjs'
import type { Platform } from './platforms.ts'
import { platforms, start } from './platforms.ts'

class Again implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(retry(1))
  }
}

/** Only of requests that say so. */
class Impatient implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>()
    if (headers['x-impatient'] === undefined) return next.handle()
    return next.handle().pipe(timeout({ each: 50, with: () => throwError(() => new RequestTimeoutException()) }))
  }
}

class Attempts {
  count = 0
  readonly begun = Promise.withResolvers<void>()
  readonly open = Promise.withResolvers<void>()
}

@Controller()
class OddController {
  readonly #attempts: Attempts

  constructor(@Inject(Attempts) attempts: Attempts) {
    this.#attempts = attempts
  }

  @Post('flaky')
  @UseInterceptors(Again)
  @Idempotent({ name: 'flaky', effect: 'repeatable' })
  flaky() {
    if (++this.#attempts.count === 1) throw new Error('The first attempt fails.')
    return { attempts: this.#attempts.count }
  }

  @Post('busy')
  @UseInterceptors(Impatient)
  @Idempotent({ name: 'busy', effect: 'external' })
  async busy() {
    this.#attempts.begun.resolve()
    if (++this.#attempts.count > 1) return { attempts: this.#attempts.count }
    await this.#attempts.open.promise
    throw new HttpException('Too busy.', 429)
  }
}

async function open(context: TestContext, platform: Platform) {
  const ledger = createLedger({ store: memoryStore(), background: false })
  const attempts = new Attempts()
  @Module({
    imports: [OnceonlyModule.forRoot({ ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) })],
    controllers: [OddController],
    providers: [{ provide: Attempts, useValue: attempts }],
  })
  class OddModule {}
  const { port, app } = await start(platform, OddModule)
  context.after(() => app.close())
  const post = (path: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers: { 'idempotency-key': 'k', ...headers } })
  return { post, attempts }
}

for (const platform of platforms) {
  test(`nest on ${platform}: an interceptor that calls the method again records no refusal`, async (context) => {
    const { post, attempts } = await open(context, platform)
    assert.equal((await post('/flaky')).status, 500)
    assert.equal(attempts.count, 1)
    const second = await post('/flaky')
    assert.deepEqual([second.status, await second.json()], [201, { attempts: 2 }])
  })

  test(`nest on ${platform}: a request that was answered while it waited does not run`, async (context) => {
    const { post, attempts } = await open(context, platform)
    const first = post('/busy')
    await attempts.begun.promise
    assert.equal((await post('/busy', { 'x-impatient': 'yes' })).status, 408)
    attempts.open.resolve()
    assert.equal((await first).status, 429)
    const third = await post('/busy')
    assert.deepEqual([third.status, await third.json()], [201, { attempts: 2 }])
  })
}
