/** Where credentials for a bucket come from. moto verifies signatures and enforces the policies of users and roles. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { CertificateAuthority } from '../../support/certs.ts'
import { type HttpFault, HttpFaults } from '../../support/http-faults.ts'
import { type Moto, motoMissing, startMoto } from '../../support/moto.ts'
import { s3Environment } from '../../support/s3.ts'
import { WrongClock } from '../../support/wrong-clock.ts'

interface Keys {
  readonly id: string
  readonly secret: string
}

const probe = join(import.meta.dirname, '../../support/s3-probe.ts')
const TRUST = policy({ Action: 'sts:AssumeRoleWithWebIdentity', Principal: '*' })
const ALLOW_OBJECTS = policy({ Action: 's3:*', Resource: 'arn:aws:s3:::archive/*' })

const SKEWED: HttpFault = {
  kind: 'status',
  status: 403,
  body: '<Error><Code>RequestTimeTooSkewed</Code><Message>The clocks differ.</Message></Error>',
}

describe('credentials for a bucket', { skip: motoMissing }, () => {
  let moto: Moto
  let folder: string
  let allowed: Keys
  let other: Keys
  before(async () => {
    moto = await startMoto()
    folder = await mkdtemp(join(tmpdir(), 'tidings-credentials-'))
    allowed = await createUser(moto, 'writer')
    other = await createUser(moto, 'stranger')
    const objects = { PolicyName: 'objects', PolicyDocument: ALLOW_OBJECTS }
    await moto.identity({ Action: 'PutUserPolicy', UserName: 'writer', ...objects })
    const role = { RoleName: 'archive', AssumeRolePolicyDocument: TRUST }
    await moto.identity({ Action: 'CreateRole', ...role })
    await moto.identity({ Action: 'CreateRole', ...role, RoleName: 'stranger' })
    await moto.identity({ Action: 'PutRolePolicy', RoleName: 'archive', ...objects })
    await moto.enforce()
  })
  after(async () => {
    await moto[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  /** What a process with this environment, and nothing else, gets. */
  const result = async (env: Readonly<Record<string, string>>): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [probe, moto.url], {
      env: {
        HOME: folder,
        AWS_EC2_METADATA_DISABLED: 'true',
        AWS_ENDPOINT_URL: moto.endpoint,
        ...env,
      },
    })
    return stdout.trim()
  }
  const file = async (name: string, content: string): Promise<string> => {
    const path = join(folder, name)
    await writeFile(path, content, { mode: 0o600 })
    return path
  }

  test('from the environment', async () => {
    assert.equal(await result(s3Environment(moto.endpoint, allowed.id, allowed.secret)), 'it works')
  })

  test('from a profile of the shared files', async () => {
    const credentials = await file(
      'credentials',
      `[default]\naws_access_key_id = nobody\naws_secret_access_key = none\n` +
        `[archive]\naws_access_key_id = ${allowed.id}\naws_secret_access_key = ${allowed.secret}\n`,
    )
    const files = { AWS_SHARED_CREDENTIALS_FILE: credentials }
    assert.equal(await result({ ...files, AWS_PROFILE: 'archive' }), 'it works')
    assert.match(await result(files), /^denied: .*InvalidAccessKeyId/)
  })

  test('signs for the region of the environment, else of the profile, else us-east-1', async () => {
    await using proxy = await HttpFaults.start(moto.endpoint)
    const regions = new Set<string | undefined>()
    proxy.decide = ({ headers }) => {
      regions.add(headers.authorization?.split('/')[2])
      return { kind: 'pass' }
    }
    const regionWith = async (env: Readonly<Record<string, string>>) => {
      regions.clear()
      const keys = { AWS_ACCESS_KEY_ID: allowed.id, AWS_SECRET_ACCESS_KEY: allowed.secret }
      // A name, for which the SDK would put the bucket into the name of the host.
      const endpoint = proxy.endpoint.replace('127.0.0.1', 'localhost')
      assert.equal(await result({ ...keys, AWS_ENDPOINT_URL_S3: endpoint, ...env }), 'it works')
      return [...regions]
    }
    const AWS_CONFIG_FILE = await file('config', '[default]\nregion = eu-central-1\n')
    assert.deepEqual(await regionWith({}), ['us-east-1'])
    assert.deepEqual(await regionWith({ AWS_CONFIG_FILE }), ['eu-central-1'])
    assert.deepEqual(await regionWith({ AWS_CONFIG_FILE, AWS_REGION: 'eu-west-1' }), ['eu-west-1'])
    assert.deepEqual(await regionWith({ AWS_DEFAULT_REGION: 'eu-north-1' }), ['eu-north-1'])
    assert.ok(proxy.requests.every((request) => / \/archive\/events\/probe/.test(request)))
  })

  test('signs with the clock of S3 if that of the machine is wrong', async () => {
    await using clock = await WrongClock.make('-2h')
    await using proxy = await HttpFaults.start(moto.endpoint)
    // moto does not compare the time of a signature with its own.
    proxy.decide = ({ headers }) => (isSigned(headers['x-amz-date']) ? { kind: 'pass' } : SKEWED)
    const env = s3Environment(proxy.endpoint, allowed.id, allowed.secret)
    assert.equal(await result({ ...env, ...clock.env }), 'it works')
    assert.deepEqual(
      proxy.requests.map((request) => request.split(' ')[0]),
      ['PUT', 'PUT', 'GET'],
    )
  })

  test('trusts a private authority if NODE_EXTRA_CA_CERTS has it, and only then', async () => {
    const authority = await CertificateAuthority.create('stores')
    await using proxy = await HttpFaults.start(moto.endpoint, await authority.issueServer())
    const env = s3Environment(proxy.endpoint, allowed.id, allowed.secret)
    assert.match(await result(env), /^unavailable: put s3:.*certificate.*NODE_EXTRA_CA_CERTS/)
    const NODE_EXTRA_CA_CERTS = await file('ca.pem', String(authority.cert))
    assert.equal(await result({ ...env, NODE_EXTRA_CA_CERTS }), 'it works')
    const plain = s3Environment(
      moto.endpoint.replace('http:', 'https:'),
      allowed.id,
      allowed.secret,
    )
    assert.match(
      await result(plain),
      /^unavailable: .*check that AWS_ENDPOINT_URL_S3 is https if S3 is/,
    )
  })

  test('from the token of a service account', async () => {
    const token = await file('token', 'header.payload.signature')
    const env = {
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/archive',
      AWS_WEB_IDENTITY_TOKEN_FILE: token,
      AWS_REGION: 'us-east-1',
    }
    // moto cannot verify the request for a session, which is not signed.
    await moto.enforce({ afterRequests: 1 })
    assert.equal(await result(env), 'it works')
    await moto.enforce({ afterRequests: 1 })
    const stranger = { ...env, AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/stranger' }
    assert.match(await result(stranger), /^denied: .*AccessDenied/)
    const missing = await result({ ...env, AWS_WEB_IDENTITY_TOKEN_FILE: `${token}-gone` })
    assert.match(missing, /^denied: .*no such file.*token-gone/)
  })

  test('from the agent of a pod identity', async () => {
    const agent = http.createServer(({ url, headers }, response) => {
      const isKnown = url === '/v1/credentials' && headers.authorization === 'pod-token'
      if (!isKnown) response.writeHead(403).end()
      const keys = { AccessKeyId: allowed.id, SecretAccessKey: allowed.secret, Token: '' }
      const Expiration = new Date(Date.now() + 3_600_000).toISOString()
      response.end(JSON.stringify({ ...keys, Expiration }))
    })
    agent.listen(0, '127.0.0.1')
    await once(agent, 'listening')
    const { port } = agent.address() as AddressInfo
    const env = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${port}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: await file('pod-token', 'pod-token'),
    }
    try {
      assert.equal(await result(env), 'it works')
    } finally {
      agent.close()
    }
  })

  test('says what is wrong with them', async () => {
    const none = await result({})
    assert.match(
      none,
      /^denied: put s3:\/\/archive\/events\/probe: Could not load credentials.*AWS_PROFILE/,
    )
    const wrong = await result(s3Environment(moto.endpoint, allowed.id, 'wrong'))
    assert.match(wrong, /^denied: .*SignatureDoesNotMatch.*check the access key and its secret/)
    const stranger = await result(s3Environment(moto.endpoint, other.id, other.secret))
    assert.match(stranger, /^denied: .*AccessDenied.*s3:PutObject/)
    const endpoint = await result({ ...s3Environment('minio:9000', 'a', 'b') })
    assert.match(endpoint, /AWS_ENDPOINT_URL_S3 is not a URL/)
    for (const text of [none, wrong, stranger]) {
      assert.equal(text.includes(allowed.secret) || text.includes(other.secret), false, text)
    }
  })
})

/** Whether it was signed within the quarter of an hour that S3 allows. */
function isSigned(at: string | string[] | undefined): boolean {
  const time = String(at).replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z')
  return Math.abs(Date.parse(time) - Date.now()) < 15 * 60_000
}

async function createUser(moto: Moto, name: string): Promise<Keys> {
  await moto.identity({ Action: 'CreateUser', UserName: name })
  const reply = await moto.identity({ Action: 'CreateAccessKey', UserName: name })
  return { id: tag(reply, 'AccessKeyId'), secret: tag(reply, 'SecretAccessKey') }
}

function tag(xml: string, name: string): string {
  const [, text] = new RegExp(`<${name}>([^<]+)<`).exec(xml) ?? []
  assert.ok(text !== undefined, xml)
  return text
}

function policy(statement: Readonly<Record<string, string>>): string {
  return JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', ...statement }] })
}
