// Burns CPU time in a function that V8 compiles: a second of it.

function burnHot(rounds) {
  let sum = 0;
  for (let round = 0; round < rounds; round++) {
    sum = (sum * 31 + round) | 0;
    sum ^= sum >>> 3;
  }
  return sum;
}

let total = 0;
while (process.cpuUsage().user < 1000000) {
  total = (total + burnHot(100000)) | 0;
}
console.log(total);
