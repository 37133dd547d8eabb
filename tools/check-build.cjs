// Says what to do when the server is started before it was built.
const { existsSync } = require('node:fs')
const { join } = require('node:path')

if (!existsSync(join(__dirname, '../dist/main.js'))) {
  process.stderr.write('Error: there is no dist/main.js: run "npm run build" first\n')
  process.exitCode = 1
}
