import { ValidationPipe } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'

async function bootstrap() {
  const app = await NestFactory.create(AppModule, { rawBody: true })
  app.useGlobalPipes(new ValidationPipe({ whitelist: true }))
  app.enableShutdownHooks()
  await app.listen(process.env['PORT'] ?? 3000)
  console.log(`Listening at ${await app.getUrl()}`)
}
void bootstrap()
