// A second tool in the memory folder: it follows the published format and lock protocol, nothing of memd's.
//
//   node cotenant.mjs write STORE NAME COUNT   append COUNT lines to the topic Common, every tenth a new topic
//   node cotenant.mjs hold STORE               take the lock, print "held", keep it until the input ends
import fs from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import path from 'node:path';

const [mode, store, name, count] = process.argv.slice(2);
const lock = path.join(store, '.lock');
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

async function tryTake(token) {
  try {
    await fs.writeFile(lock, token, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  try {
    const before = await fs.stat(lock);
    const age = Date.now() - before.mtimeMs;
    const pid = parseInt((await fs.readFile(lock, 'utf8')).split('\t')[0], 10);
    const gone = Number.isNaN(pid) ? age > 60000 : age > 10000 && !alive(pid);
    if (gone) {
      const again = await fs.stat(lock);
      if (again.ino === before.ino && again.mtimeMs === before.mtimeMs) await fs.unlink(lock);
    }
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  return false;
}

async function take() {
  const token = `${process.pid}\t${Date.now()}\t${randomBytes(8).toString('hex')}`;
  for (const rest of [1000, 0]) {
    const end = Date.now() + 2000;
    while (Date.now() < end) {
      if (await tryTake(token)) return token;
      await pause(25);
    }
    await pause(rest);
  }
  return null;
}

async function release(token) {
  if ((await fs.readFile(lock, 'utf8')) === token) await fs.unlink(lock);
  else throw new Error('somebody else has my lock');
}

async function put(file, text) {
  const temporary = `${file}.tmp-${process.pid}`;
  await fs.writeFile(temporary, text);
  await fs.rename(temporary, file);
}

async function read(file, otherwise) {
  try {
    return await fs.readFile(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  }
}

async function write(topic, file, text) {
  let token = null;
  let busy = 0;
  while ((token = await take()) === null) busy += 1;
  const at = new Date().toISOString().slice(0, 19) + 'Z';
  const full = path.join(store, file);
  const old = await read(full, null);
  const front = `---\nname: "${topic}"\ndescription: "${topic}"\ncreated: ${at}\nlast_updated: ${at}\n` +
    'metadata:\n  node_type: memory\n---\n';
  await put(full, old === null ? `${front}\n${text}\n` : `${old.trimEnd()}\n\n## ${at}\n\n${text}\n`);
  const index = await read(path.join(store, 'MEMORY.md'), '# Memory Index\n\n');
  const lines = index.trimEnd().split('\n').filter((line) => !line.includes(`](${file})`));
  lines.push(`- [${topic}](${file}) ${at} -- ${topic}`);
  await put(path.join(store, 'MEMORY.md'), lines.join('\n'));
  await release(token);
  return busy;
}

if (mode === 'hold') {
  const token = await take();
  console.log('held');
  process.stdin.resume();
  process.stdin.on('end', async () => {
    await release(token);
    process.exit(0);
  });
} else {
  let busy = 0;
  for (let number = 0; number < Number(count); number += 1) {
    if (number % 10 === 9) busy += await write(`${name} ${number}`, `${name}-${number}.md`, `${name} ${number}`);
    else busy += await write('Common', 'common.md', `line ${name} ${number} end`);
  }
  console.log(`busy ${busy}`);
}
