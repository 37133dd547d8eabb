import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { reservePort } from '../../support/ports.ts'

test('a reserved port is marked as taken until the process that reserved it ends', async () => {
  const module = new URL('../../support/ports.ts', import.meta.url).href
  const script = `import { reservePort } from ${JSON.stringify(module)}\nconsole.log(await reservePort())`
  const args = ['--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const later = createSocket('udp4').bind({ port: Number(stdout), address: '127.0.0.1' })
  await once(later, 'listening')
  later.close()

  const own = createSocket('udp4').bind({ port: await reservePort(), address: '127.0.0.1' })
  const [error] = await once(own, 'error')
  assert.equal(error.code, 'EADDRINUSE')
})
