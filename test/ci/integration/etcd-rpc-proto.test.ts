import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const folderOfProtocol = join(import.meta.dirname, '../../support/etcd-protocol')
const modules = join(import.meta.dirname, '../../../node_modules')
const tools = join(modules, '.bin')

test('the generated code of rpc.proto is up to date (npm run proto)', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-proto-'))
  try {
    const template = {
      version: 'v2',
      plugins: [{ local: join(tools, 'protoc-gen-es'), out: folder, opt: ['target=ts'] }],
    }
    await promisify(execFile)(
      process.execPath,
      [
        join(modules, '@bufbuild/buf/bin/buf'),
        'generate',
        '--template',
        JSON.stringify(template),
        join(folderOfProtocol, 'rpc.proto'),
      ],
      { env: { PATH: [tools, '/usr/bin', '/bin'].join(delimiter), HOME: folder } },
    )
    assert.equal(
      await readFile(join(folderOfProtocol, 'rpc_pb.ts'), 'utf8'),
      await readFile(join(folder, 'rpc_pb.ts'), 'utf8'),
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
