import json, os, sqlite3, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import _kit as k

a = k.args()
home = os.path.join(a.dest, 'R&D 100% "mine" $HOME \\x')
os.makedirs(home, exist_ok=True)
k.write(os.path.join(a.dest, "home.txt"), home)
