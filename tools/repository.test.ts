/** What the hosting of the repository reads: workflows, owners, updates, the version of Node. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..')
const workflowFolder = '.github/workflows'
const { devDependencies } = JSON.parse(read('package.json'))

interface Step {
  readonly if?: string
  readonly run?: string
  readonly uses?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Job {
  readonly 'timeout-minutes'?: number
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
  readonly container?: { readonly image: string }
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>
  readonly permissions?: Readonly<Record<string, string>>
  readonly concurrency?: object
  readonly jobs: Readonly<Record<string, Job>>
}

/** The only jobs that may do more than read, and what for. */
const WIDER: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'release.yml attest': { contents: 'read', 'id-token': 'write', attestations: 'write' },
  'release.yml draft': { contents: 'write' },
}

for (const file of readdirSync(join(root, workflowFolder))) {
  describe(`workflow ${file}`, () => {
    const text = read(`${workflowFolder}/${file}`)
    const workflow: Workflow = parse(text)
    const jobs = Object.entries(workflow.jobs)
    const steps = jobs.flatMap(([, job]) => job.steps)
    const runs = steps.flatMap(({ run }) => run ?? [])

    test('containers are pinned by digest', () => {
      for (const [, { container }] of jobs) {
        if (container !== undefined) assert.match(container.image, /@sha256:[0-9a-f]{64}$/)
      }
    })

    test('may only read, except for named jobs', () => {
      assert.deepEqual(workflow.permissions, { contents: 'read' })
      for (const [name, { permissions }] of jobs) {
        assert.deepEqual(permissions, WIDER[`${file} ${name}`], name)
      }
    })

    test('ends in time, and does not run twice at once', () => {
      assert.ok(workflow.concurrency !== undefined)
      for (const [name, job] of jobs) assert.ok((job['timeout-minutes'] ?? 0) > 0, name)
    })

    test('runs with the rights of the branch that triggers it', () => {
      for (const trigger of ['pull_request_target', 'workflow_run', 'issue_comment']) {
        assert.ok(!(trigger in workflow.on), trigger)
      }
    })

    test('puts no expression into a shell: values come through the environment', () => {
      assert.deepEqual(
        runs.filter((run) => run.includes('${{')),
        [],
      )
    })

    test('pins actions by commit, with the version beside it', () => {
      const used = text.split('\n').filter((line) => /\buses:/.test(line))
      const loose = used.filter(
        (line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line),
      )
      assert.deepEqual(loose, [])
    })

    test('leaves no credentials in a checkout', () => {
      for (const { uses = '', with: options } of steps) {
        if (uses.startsWith('actions/checkout@'))
          assert.equal(options?.['persist-credentials'], false)
      }
    })

    test('names only files that exist', () => {
      const files = runs.flatMap((run) => [...run.matchAll(/(?:^|\s)((?:\.ci|tools)\/[\w./-]+)/gm)])
      for (const [, path = ''] of files) assert.ok(existsSync(join(root, path)), path)
    })
  })
}

test('workflows: pull requests run .ci/run, nights npm run nightly, tags the artefacts', () => {
  const workflow = (name: string) => read(`${workflowFolder}/${name}`)
  assert.match(workflow('ci.yml'), /pull_request:[\s\S]*run: \.ci\/run\n/)
  assert.match(workflow('nightly.yml'), /schedule:[\s\S]*npm run nightly/)
  assert.match(workflow('release.yml'), /tags: \["v\*"\][\s\S]*npm run release:artefacts/)
})

test('workflows: the screenshots of the page are kept, also of a run that failed', () => {
  const [screenshots = ''] = /\.cache\/\w+/.exec(read('test/support/browser.ts')) ?? []
  for (const name of ['ci.yml', 'nightly.yml']) {
    const { jobs }: Workflow = parse(read(`${workflowFolder}/${name}`))
    const steps = Object.values(jobs).flatMap((job) => job.steps)
    const kept = steps.find(({ uses = '' }) => uses.startsWith('actions/upload-artifact@'))
    assert.equal(kept?.with?.['path'], `${screenshots}/`, name)
    assert.match(kept.if ?? '', /!cancelled\(\)/, name)
  }
})

test('workflows: a job with more rights runs nothing of the repository', () => {
  const { jobs }: Workflow = parse(read(`${workflowFolder}/release.yml`))
  for (const [name, { permissions, steps }] of Object.entries(jobs)) {
    if (permissions === undefined) continue
    for (const { uses = '', run = '' } of steps) {
      assert.ok(!uses.startsWith('actions/checkout@'), name)
      assert.doesNotMatch(run, /\b(npm|node|apt-get|git) /, name)
    }
  }
})

test('Node: .node-version is the version of package.json', () => {
  assert.equal(read('.node-version').trim(), devDependencies.node)
})

test('owners: every path exists, every room of the sources has one, and all are teams', () => {
  const rows = read('.github/CODEOWNERS')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(/\s+/))
  for (const [path = '', ...owners] of rows) {
    if (path !== '*') assert.ok(existsSync(join(root, path)), path)
    for (const owner of owners) assert.match(owner, /^@tidings\/[a-z-]+$/)
  }
  const rooms = readdirSync(join(root, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `/src/${name}/`)
  assert.deepEqual(
    rooms.filter((room) => !rows.some(([path]) => path === room)),
    [],
  )
})

test('updates: exact versions that are a week old, and Node with its types', () => {
  const renovate = JSON.parse(read('renovate.json'))
  assert.equal(renovate.rangeStrategy, 'pin')
  assert.equal(renovate.minimumReleaseAge, '7 days')
  const rules: readonly { readonly matchPackageNames?: readonly string[] }[] = renovate.packageRules
  assert.ok(
    rules.some(
      ({ matchPackageNames: names = [] }) =>
        names.includes('node') && names.includes('@types/node'),
    ),
  )
})

test('issue forms: each is a form with a name and fields', () => {
  for (const file of readdirSync(join(root, '.github/ISSUE_TEMPLATE'))) {
    const form = parse(read(`.github/ISSUE_TEMPLATE/${file}`))
    if (file === 'config.yml') continue
    assert.ok(form.name !== '' && form.description !== '' && form.body.length > 0, file)
  }
})

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
